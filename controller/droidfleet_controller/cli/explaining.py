"""How an explanation is shown: a Rich tree for people, a plain document for programs. Never prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text
from rich.tree import Tree

from droidfleet_controller.cli import documents
from droidfleet_controller.cli.failures import issue_text
from droidfleet_controller.cli.text import cell
from droidfleet_shared.protocol.explain_words import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from droidfleet_controller.cli.documents import Document
    from droidfleet_shared.protocol.bounds import Bound
    from droidfleet_shared.protocol.explain import Explanation, StepExplanation
    from droidfleet_shared.protocol.explain_phrases import Language
    from droidfleet_shared.protocol.issues import Issue


def explanation_view(explanation: Explanation, warnings: Sequence[Issue], *, language: Language) -> RenderableType:
    """The tree of steps, then what is worth a look, then the values."""
    words = Words(language)
    tree = Tree(cell(explanation.task_id, "bold"), guide_style="dim")
    _grow(tree, explanation.steps, words)
    total = words.joined([words.bound(explanation.bound)])
    parts: list[RenderableType] = [tree, Text(), cell(words.phrase("Bound", bound=total))]
    if warnings:
        parts += [Text(), cell(words.phrase("Warnings"), "bold")]
        parts += [Text(f"  {issue_text(issue)}") for issue in warnings]
    if explanation.references:
        parts += [Text(), cell(words.phrase("References"), "bold")]
        parts += [cell(f"  {each.name}: {each.resolves}") for each in explanation.references]
    return Group(*parts)


def _grow(tree: Tree, steps: Sequence[StepExplanation], words: Words) -> None:
    for step in steps:
        line = cell(step.id, "cyan").append("  ").append_text(cell(step.does))
        if step.label:
            line.append_text(cell(f"  # {step.label}", "dim"))
        for note in step.notes:
            line.append("\n  ").append_text(cell(note))
        runs = words.runs(step.runs)
        line.append("\n  ").append_text(cell(words.joined([words.bound(step.bound), *([runs] if runs else [])]), "dim"))
        branch = tree.add(line)
        for field, inner in step.lists:
            # One list needs no heading.
            _grow(branch if len(step.lists) == 1 else branch.add(cell(words.phrase(field), "bold")), inner, words)


def explanation_document(explanation: Explanation, warnings: Sequence[Issue], *, language: Language) -> Document:
    """The explanation as docs/cli.md promises it."""
    words = Words(language)
    return {
        "valid": True,
        "errors": [],
        "warnings": documents.issue_documents(warnings),
        "taskId": explanation.task_id,
        "bound": _bound(explanation.bound, words),
        "steps": [_step(step, words) for step in explanation.steps],
        "references": [
            {"name": each.name, "resolves": each.resolves, "places": list(each.places)}
            for each in explanation.references
        ],
    }


def _step(step: StepExplanation, words: Words) -> Document:
    return {
        "path": step.path,
        "id": step.id,
        "action": step.action,
        "label": step.label or None,
        "does": step.does,
        "notes": list(step.notes),
        "bound": _bound(step.bound, words),
        "runs": step.runs,
        **{field: [_step(each, words) for each in inner] for field, inner in step.lists},
    }


def _bound(bound: Bound, words: Words) -> Document:
    return {
        "timeMs": bound.time_ms,
        "effects": bound.effects,
        "keyboardHides": bound.keyboard_hides,
        "text": words.bound(bound),
    }
