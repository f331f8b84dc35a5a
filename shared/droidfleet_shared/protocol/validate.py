"""The one validator of protocol v1. The controller, the agent and the CLI call it; none has rules of its own.

``text -> jsontext (strict JSON) -> rules (over the raw tree) and structure (the models) -> Validation``. Pure; time and
memory are bounded by `task.MAX_DOCUMENT_BYTES`, whatever the document holds.
"""

from __future__ import annotations

import itertools
from typing import TypeVar

from droidfleet_shared.protocol.advice import MAX_WARNINGS, warnings
from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.issues import MAX_ISSUE_CHARACTERS, MAX_ISSUES, Finding, Issue, Validation
from droidfleet_shared.protocol.jsontext import Parsed, parse
from droidfleet_shared.protocol.pointers import DocumentOrder, Json
from droidfleet_shared.protocol.rules import rule_findings
from droidfleet_shared.protocol.steps.flow import MAX_STEPS
from droidfleet_shared.protocol.structure import check
from droidfleet_shared.protocol.task import ADDRESS_BYTES, MAX_DOCUMENT_BYTES, Task, TaskTemplate

TaskT = TypeVar("TaskT", bound=TaskTemplate)

_COVERS_WHAT_IS_IN_IT = {ValidationCode.UNKNOWN_FIELD, ValidationCode.WRONG_TYPE}


def validate_task(text: str | bytes, *, words: EffectWords | None = None) -> Validation[Task]:
    """Validates a task document, as an agent is given it. Never raises for bad input.

    A template of the largest size is valid here too, once an agent's name and a revision are written into it.
    """
    return _validation(Task, parse(text, max_bytes=MAX_DOCUMENT_BYTES + ADDRESS_BYTES), words)


def validate_template(text: str | bytes, *, words: EffectWords | None = None) -> Validation[TaskTemplate]:
    """Validates a task template, as the library keeps it: a task without `assignedAgentName`."""
    return _validation(TaskTemplate, parse(text, max_bytes=MAX_DOCUMENT_BYTES), words)


def validate_document(text: str | bytes, *, words: EffectWords | None = None) -> Validation[TaskTemplate]:
    """Validates a document that may be either: a task when it bears an `assignedAgentName`, else a template."""
    parsed = parse(text, max_bytes=MAX_DOCUMENT_BYTES)
    if isinstance(parsed.value, dict) and "assignedAgentName" in parsed.value:
        return _validation(Task, parsed, words)
    return _validation(TaskTemplate, parsed, words)


def check_agent(task: Task, own_name: str) -> str:
    """Why an agent of that name must refuse the task (`StepCode.AGENT_MISMATCH`); empty when it may run it."""
    if task.assigned_agent_name == own_name:
        return ""
    return f"the task is assigned to agent {task.assigned_agent_name!r}; this agent is {own_name!r}"


def _validation(model: type[TaskT], parsed: Parsed, words: EffectWords | None) -> Validation[TaskT]:
    if not parsed.readable:
        return Validation(None, tuple(finding.issue() for finding in parsed.findings), (), None)
    document = parsed.value
    by_rules = rule_findings(document)
    task, by_structure = check(model, _for_models(document))
    findings = _without_echoes([*parsed.findings], by_structure, by_rules)
    order = DocumentOrder(document)
    if findings:
        findings.sort(key=lambda finding: order.key(finding.place))
        task = None
    advice = list(itertools.islice(warnings(document, task, words=words), MAX_WARNINGS))
    advice.sort(key=lambda warning: order.key(warning.place))
    return Validation(task, _cut(findings), tuple(warning.issue() for warning in advice), document)


def _for_models(document: Json) -> Json:
    """The document with no more steps at the top than are allowed: the rules report the others."""
    if isinstance(document, dict):
        steps = document.get("steps")
        if isinstance(steps, list) and len(steps) > MAX_STEPS:
            document = document | {"steps": steps[:MAX_STEPS]}
    return document


def _without_echoes(lexical: list[Finding], structural: list[Finding], by_rules: list[Finding]) -> list[Finding]:
    """All findings but those that only follow from another: in what is unknown or of the wrong type, nothing counts."""
    spoilt = {finding.place for finding in lexical}
    findings = lexical + [finding for finding in structural if finding.place not in spoilt]
    covering = {finding.place for finding in findings if finding.code in _COVERS_WHAT_IS_IN_IT} | spoilt
    for finding in by_rules:
        place = finding.place
        if not any(place[:length] in covering for length in range(len(place) + 1)):
            findings.append(finding)
    return findings


def _cut(findings: list[Finding]) -> tuple[Issue, ...]:
    issues: list[Issue] = []
    size = 0
    for finding in findings:
        issue = finding.issue()
        size += len(issue.path) + len(issue.message) + len(issue.hint)
        if len(issues) >= MAX_ISSUES or (issues and size > MAX_ISSUE_CHARACTERS):
            message = f"the document has more errors than the {len(issues)} that are listed"
            issues.append(Issue("", ValidationCode.TOO_MANY_ERRORS, message, "Mend these first."))
            break
        issues.append(issue)
    return tuple(issues)
