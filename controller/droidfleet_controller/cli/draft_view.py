"""Drafts for people: a list, one with its steps and what proves each, a trial, the model. Never prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from droidfleet_controller.cli import draft_documents as documents
from droidfleet_controller.cli.documents import instant, milliseconds
from droidfleet_controller.cli.failures import issue_text
from droidfleet_controller.cli.tables import facts, table
from droidfleet_controller.cli.text import age, cell, duration, moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from rich.console import RenderableType
    from rich.table import Table

    from droidfleet.v1 import draft_pb2
    from droidfleet_shared.protocol.pointers import Json

STYLES = {
    "EXPLORING": "cyan",
    "READY": "green",
    "ACCEPTED": "green",
    "FAILED": "red",
    "STOPPED": "yellow",
    "DISCARDED": "dim",
}
SPARE_OF_LIST = ("Spent", "Model", "Changed")
STEP_LISTS = ("steps", "then", "else")
MAX_LEVELS = 20
"""Steps in steps: more than the protocol takes."""


def drafts(items: Iterable[draft_pb2.Draft], *, now: datetime) -> Table:
    """One row a draft."""
    made = table("Draft", "State", "Device", "What for", "Spent", "Model", "Changed")
    for item in items:
        made.add_row(
            cell(item.draft_id),
            state(item),
            cell(str(documents.brief_of(item).get("device", ""))),
            cell(documents.description_of(item)),
            cell(documents.spent(item)),
            cell(item.model),
            cell(age(instant(item.updated_at), now)),
        )
    return made


def draft(item: draft_pb2.Draft) -> Group:
    """All about a draft: each step with what proves it, and what a person should look at."""
    proposal = documents.proposal_of(item)
    accepted = item.accepted
    became = [f"task {accepted.task_id} r{accepted.revision}"] if item.HasField("accepted") else []
    became += [f"rollout {accepted.rollout_id}"] if accepted.rollout_id else []
    became += [f"schedule {accepted.schedule}"] if accepted.schedule else []
    parts: list[RenderableType] = [
        facts(
            ("Draft", cell(item.draft_id)),
            ("State", state(item)),
            ("Became", cell(", ".join(became))),
            ("Reason", cell(f"{item.code}: {item.message}" if item.code else "")),
            ("Asked for", cell(str(documents.brief_of(item).get("description", "")))),
            ("Device", cell(str(documents.brief_of(item).get("device", "")))),
            ("Version", cell(str(item.version))),
            ("Model", cell(item.model)),
            ("Spent", cell(documents.spent(item))),
            ("Waits for", cell(_waits_for(item), "yellow")),
            ("Changed", cell(moment(instant(item.updated_at)))),
        )
    ]
    if proposal:
        parts += [Text(), *_proposal(proposal)]
    if item.issues:
        parts += [Text(), Text("Wrong with it", style="bold red"), *(Text(issue_text(each)) for each in item.issues)]
    if item.trials:
        parts += [Text(), Text("Trials", style="bold"), _trials(item.trials)]
    return Group(*parts)


def trial(item: draft_pb2.DraftTrial) -> Table:
    """How a trial went."""
    result = item.result
    return facts(
        ("Trial", cell(f"step {item.step_id}" if item.step_id else "the whole task")),
        ("Result", cell(result.code, "green" if result.successful else "red")),
        ("Message", cell(result.message)),
        ("Failed step", cell(result.failed_step_id)),
        ("On screen", cell(result.failed_screen)),
        ("Left out", cell(", ".join(item.withheld), "yellow")),
        ("Read", cell(result.outputs_json if result.outputs_json not in ("", "{}") else "")),
        ("Took", cell(duration(milliseconds(result.duration) / 1000))),
        ("Execution", cell(item.execution_id)),
    )


def model(item: draft_pb2.GetModelResponse) -> Table:
    """The model, and what a draft may cost."""
    kind = "rules, no language model" if item.practice else ""
    money = f", {item.max_money:.2f} {item.currency}" if item.HasField("max_money") else ", price not known"
    return facts(
        ("Model", cell(item.model or "none: start the controller with --model-url or --practice-model")),
        ("Kind", cell(kind)),
        ("Server", cell(item.base_url)),
        ("Sees pictures", cell(("yes" if item.vision else "no") if item.configured else "")),
        ("A draft may use", cell(f"{item.max_tokens:,} tokens{money}, {item.max_turns} turns")),
    )


def next_of(item: draft_pb2.Draft) -> list[str]:
    """What a person may do next with a draft, a line each."""
    name = item.draft_id
    match documents.draft_state(item):
        case "EXPLORING":
            return [f"Watch it: droidfleet draft watch {name}", f"End it: droidfleet draft stop {name}"]
        case "READY" if item.issues:
            return [f"Mend it: droidfleet draft edit {name}"]
        case "READY":
            return [f"Try it: droidfleet draft try {name}", f"Accept it: droidfleet draft accept {name}"]
        case "FAILED" | "STOPPED":
            return [f"See what it did: droidfleet draft watch {name}"]
        case _:
            return []


def state(item: draft_pb2.Draft) -> Text:
    """The state's word, and whether a person is waited for."""
    word = documents.draft_state(item)
    if item.pending_approval_id:
        return cell(f"{word}, asks", "yellow")
    return cell(word, STYLES.get(word, ""))


def _waits_for(item: draft_pb2.Draft) -> str:
    if not item.pending_approval_id:
        return ""
    return f"a person: droidfleet draft allow {item.draft_id} (or deny)"


def _proposal(proposal: Mapping[str, Json]) -> Iterator[RenderableType]:
    yield facts(
        ("Does", cell(str(proposal.get("summary", "")))),
        ("Target", cell(_target(proposal.get("target")))),
        ("When", cell(_when(proposal.get("schedule")))),
        ("Tries", cell(_tries(proposal.get("retry")))),
    )
    task = proposal.get("task")
    if isinstance(task, dict):
        yield Text()
        yield _steps(task, _by(proposal.get("evidence"), "path"), _by(proposal.get("marks"), "path"))
    notes = proposal.get("notes")
    if isinstance(notes, list) and notes:
        yield Text()
        yield Text("Notes", style="bold")
        for note in notes:
            yield cell(f"- {note}")


def _steps(
    task: Mapping[str, Json], evidence: Mapping[str, Mapping[str, Json]], marks: Mapping[str, Mapping[str, Json]]
) -> Table:
    made = table("Step", "Does", "What proves it", "Review")
    for path, step, level in _walk(task, "", 0):
        proofs = [proof for place, proof in evidence.items() if _own(place, path)]
        mark = marks.get(path)
        made.add_row(
            cell("  " * level + str(step.get("id", ""))),
            cell(_does(step)),
            Text("\n").join(cell(f"{each.get('element', '')} on {each.get('snapshot', '')}") for each in proofs),
            cell(str(mark.get("why", "")) if mark is not None else "", "yellow"),
        )
    return made


def _own(place: str, path: str) -> bool:
    """Whether a place belongs to the step itself, and not to one inside it."""
    if not place.startswith(f"{path}/"):
        return False
    first = place[len(path) + 1 :].partition("/")[0]
    return first not in STEP_LISTS


def _walk(holder: Mapping[str, Json], path: str, level: int) -> Iterator[tuple[str, Mapping[str, Json], int]]:
    for name in STEP_LISTS:
        listed = holder.get(name)
        for place, step in enumerate(listed if isinstance(listed, list) and level < MAX_LEVELS else ()):
            if isinstance(step, dict):
                here = f"{path}/{name}/{place}"
                yield here, step, level
                yield from _walk(step, here, level + 1)


def _does(step: Mapping[str, Json]) -> str:
    label, action = step.get("label"), str(step.get("action", ""))
    percent = step.get("probability")
    chance = f" ({percent} %)" if isinstance(percent, int) and percent != 100 else ""
    if isinstance(label, str) and label:
        return f"{action}{chance}: {label}"
    selector = step.get("selector") or step.get("condition") or step.get("packageName")
    return f"{action}{chance} {json.dumps(selector, ensure_ascii=False) if selector else ''}".strip()


def _trials(items: Iterable[draft_pb2.DraftTrial]) -> Table:
    made = table("When", "Version", "What", "Result", "Left out", "Execution")
    for item in items:
        made.add_row(
            cell(moment(instant(item.at))),
            cell(str(item.version)),
            cell(item.step_id or "the whole task"),
            cell(item.result.code, "green" if item.result.successful else "red"),
            cell(", ".join(item.withheld)),
            cell(item.execution_id),
        )
    return made


def _by(listed: Json, key: str) -> dict[str, Mapping[str, Json]]:
    return {str(each.get(key)): each for each in listed if isinstance(each, dict)} if isinstance(listed, list) else {}


def _target(target: Json) -> str:
    if not isinstance(target, dict):
        return ""
    if target.get("all"):
        return "all phones"
    return f"group {target['group']}" if target.get("group") else f"device {target.get('device', '')}"


def _when(schedule: Json) -> str:
    if not isinstance(schedule, dict):
        return ""
    zone = schedule.get("timeZone", "UTC")
    if window := schedule.get("window"):
        times = window if isinstance(window, dict) else {}
        return f"from {times.get('start', '')} to {times.get('stop', '')} ({zone})"
    if cron := schedule.get("cron"):
        return f"{cron} ({zone})"
    once = schedule.get("once")
    return "when a person starts it" if once == "now" else f"once, {once} ({zone})"


def _tries(retry: Json) -> str:
    return str(retry.get("maxAttempts", "")) if isinstance(retry, dict) else ""
