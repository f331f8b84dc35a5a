"""A rollout for people: its waves as bars, rates, reasons, failures, and what can be done next. Never prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from droidfleet_controller.cli import rollout_documents as documents
from droidfleet_controller.cli.documents import instant
from droidfleet_controller.cli.tables import FREE_TEXT, STYLES, facts, table, without_spare
from droidfleet_controller.cli.text import cell, cut, duration, moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from droidfleet.v1 import rollout_pb2

BAR_WIDTH = 24
DEVICES_LENGTH = 60
"""Characters of a wave's phones in a plan; programs get all."""

SPARE = ("Gate", "Waiting", "Going on")
"""What the table of waves can do without on a narrow screen; the open wave's gate stands below it."""

SPARE_OF_LIST = ("Began", "Wave")

LINES_BESIDE_WAVES = 24
"""Lines of the live view that are no waves: header, reasons, ten failures, what can be done."""

FAILED = frozenset({"FAILED", "TIMED_OUT", "SILENT", "UNKNOWN", "REJECTED", "EXPIRED"})
"""What `maxFailures` counts."""

DRY_RUN = 0

GATE_PAUSES = frozenset({"BELOW_THRESHOLD", "SAMPLE_TOO_SMALL", "DRY_RUN_FAILED"})
"""Reasons for which a complete wave does not advance: nothing to go on with, but the next wave can be opened."""

SAID_BY_THE_STATE = "PAUSED"
"""A reason to wait that the state and its reason have said already."""

_STYLES = {
    **STYLES,
    "AWAITING_APPROVAL": "yellow",
    "PAUSED": "yellow",
    "CANCELLING": "yellow",
    "ABORTED": "red",
    "CLOSED": "dim",
    "OPEN": "cyan",
    "SOAKING": "cyan",
    "PASSED": "green",
    "WAITING": "dim",
    "STARTED": "cyan",
    "RETRYING": "yellow",
    "SILENT": "red",
    "UNKNOWN": "red",
    "SKIPPED": "dim",
    "REMOVED": "dim",
    "MISSED": "yellow",
    "OVERLAPPED": "yellow",
    "QUEUED": "cyan",
}


def word(text: str) -> Text:
    """A state or an outcome in its colour."""
    return cell(text, _STYLES.get(text, ""))


def wave_name(number: int) -> str:
    """``2``, or ``dry run``."""
    return "dry run" if number == DRY_RUN else str(number)


def live_of(wave: rollout_pb2.Wave) -> int:
    """Members that were started and have not ended."""
    live = wave.live
    return live.queued + live.assigned + live.accepted + live.running


def failed_of(outcomes: dict[str, int]) -> int:
    """How many count as failures."""
    return sum(count for outcome, count in outcomes.items() if outcome in FAILED)


def bar(parts: Sequence[tuple[int, str]], *, total: int, width: int = BAR_WIDTH) -> Text:
    """A bar of ``width`` cells: each part in its colour, the rest dim. A part that is there gets a cell at least."""
    made = Text()
    left, seen, before = width, 0, 0
    present = sum(1 for count, _ in parts if count)
    for count, style in parts:
        if not count:
            continue
        seen += count
        present -= 1
        end = round(width * seen / max(1, total))
        cells = max(1, min(end - before, left - present))
        made.append("━" * cells, style=style)
        before += cells
        left -= cells
    return made.append("━" * max(0, left), style="grey37")


def rollout(item: rollout_pb2.Rollout, *, width: int, height: int | None = None) -> Group:
    """All about a rollout in ``width`` columns: facts, waves, waits, rates, failures, what can be done. In few lines
    (``height``) it shows the waves around the open one."""
    parts: list[RenderableType] = [headline(item)]
    if item.reason:
        parts.append(cell(item.reason, "yellow" if documents.rollout_state(item) in documents.HELD else ""))
    if item.waves:
        room = len(item.waves) if height is None else max(1, height - LINES_BESIDE_WAVES)
        shown = _around_the_open_one(item.waves, room)
        parts += [Text(), without_spare(waves(shown), SPARE, width=width)]
        if len(shown) < len(item.waves):
            parts.append(cell(f"... and {len(item.waves) - len(shown)} more waves", "dim"))
    lines = [*_gate(item), *_waits(item), *_rates(item), *_confirmation(item)]
    if lines:
        parts += [Text(), *lines]
    if item.failures:
        parts += [Text(), failures(item.failures)]
    hints = what_next(item)
    if hints:
        parts += [Text(), *(cell(hint, "dim") for hint in hints)]
    return Group(*parts)


def _around_the_open_one(items: Sequence[rollout_pb2.Wave], room: int) -> Sequence[rollout_pb2.Wave]:
    """At most ``room`` of the waves, the last that is not closed among them, in the middle where it can be."""
    begun = [place for place, wave in enumerate(items) if documents.wave_state(wave) != "CLOSED"]
    first = max(0, min((begun[-1] if begun else 0) - room // 2, len(items) - room))
    return items[first : first + room]


def headline(item: rollout_pb2.Rollout) -> Text:
    """``ro-1 "summer" shop-order r2: RUNNING, wave 2 of 3``."""
    name = f' "{item.name}"' if item.name else ""
    made = cell(f"{item.rollout_id}{name}  {item.task_id} r{item.revision}  ", "bold")
    made.append_text(word(documents.rollout_state(item)))
    count = sum(1 for wave in item.waves if wave.number != DRY_RUN)
    open_now = next((wave for wave in item.waves if documents.wave_state(wave) in {"OPEN", "SOAKING"}), None)
    if open_now is not None:
        where = "dry run" if open_now.number == DRY_RUN else f"wave {open_now.number} of {count}"
        made.append(f"  {where}")
    return made


def waves(items: Iterable[rollout_pb2.Wave]) -> Table:
    """One row a wave."""
    made = table("Wave", "State", "", "Done", "Succeeded", "Failed", "Going on", "Waiting", "Gate")
    for wave in items:
        outcomes = documents.outcomes_of(wave)
        done, failed = sum(outcomes.values()), failed_of(outcomes)
        succeeded = outcomes.get("SUCCEEDED", 0)
        going = live_of(wave) + wave.retrying
        other = done - succeeded - failed
        parts = ((succeeded, "green"), (failed, "red"), (other, "yellow"), (going, "cyan"))
        made.add_row(
            cell(wave_name(wave.number)),
            word(documents.wave_state(wave)),
            bar(parts, total=wave.members),
            cell(f"{done}/{wave.members}"),
            cell(str(succeeded)),
            cell(str(failed), "red" if failed else ""),
            cell(str(going)),
            cell(str(wave.waiting)),
            cell(wave.gate),
        )
    return made


def failures(items: Iterable[rollout_pb2.FailureSignature]) -> Table:
    """One row a failure that phones have in common, with an execution to look at."""
    made = table("Phones", "Failure", "Retries", "For example")
    made.columns[3].no_wrap = True
    for item in items:
        made.add_row(
            cell(str(item.phones)),
            cell(signature(item), "red"),
            cell("stopped" if item.breaker_open else "", "yellow"),
            cell(item.execution_id),
        )
    return made


def signature(item: rollout_pb2.FailureSignature) -> str:
    """``TARGET_AMBIGUOUS at add-to-cart on com.example.shop/.Cart``."""
    step = f" at {item.step_id}" if item.step_id else ""
    return f"{item.code}{step}{f' on {item.screen}' if item.screen else ''}"


def what_next(item: rollout_pb2.Rollout) -> list[str]:
    """The commands that make sense now, each with what it is for."""

    def line(purpose: str, command: str, options: str = "") -> str:
        return f"{purpose}: droidfleet rollout {command} {item.rollout_id}{options}"

    end = line("End it", "cancel")
    match documents.rollout_state(item):
        case "RUNNING":
            return [line("Hold it", "pause"), end]
        case "AWAITING_APPROVAL":
            return [line("Open the next wave", "promote"), end]
        case "PAUSED":
            held_by_gate = item.reason_code in GATE_PAUSES
            on = line("Open the next wave all the same", "promote") if held_by_gate else line("Go on", "resume")
            return [line("Why", "explain"), on, end]
        case "CANCELLING":
            return [line("Without waiting for the phones", "abort")]
        case _:
            return [line("All of it as a file", "report", " -f html -o report.html")]


def _gate(item: rollout_pb2.Rollout) -> list[Text]:
    return [
        cell(f"Wave {wave_name(wave.number)}: {wave.gate}")
        for wave in item.waves
        if wave.gate and documents.wave_state(wave) in {"OPEN", "SOAKING", "FAILED"}
    ]


def _waits(item: rollout_pb2.Rollout) -> list[Text]:
    found = []
    for wait in item.waits:
        if wait.why == SAID_BY_THE_STATE:
            continue
        at = instant(wait.until)
        found.append(cell(f"{wait.sentence}{f' (until {moment(at)})' if at is not None else ''}"))
    return found


def _rates(item: rollout_pb2.Rollout) -> list[Text]:
    if documents.rollout_state(item) in documents.TERMINAL:
        return []
    return [cell(f"In the last minute {item.started_last_minute} began and {item.ended_last_minute} ended.")]


def _confirmation(item: rollout_pb2.Rollout) -> list[Text]:
    found = confirmation(item)
    return [cell(found, "yellow")] if found else []


def confirmation(item: rollout_pb2.Rollout) -> str:
    """``confirmed on 37 of 40, 3 offline``; empty where nothing has to be."""
    found = item.confirmation
    if not found.asked:
        return ""
    offline = f", {found.offline} offline" if found.offline else ""
    return f"confirmed on {found.confirmed} of {found.asked}{offline}"


def rollouts(items: Iterable[rollout_pb2.Rollout]) -> Table:
    """One row a rollout."""
    made = table("Rollout", "Name", "Task", "State", "Wave", "Began", "Why")
    made.columns[0].no_wrap = True
    for item in items:
        made.add_row(
            cell(item.rollout_id),
            cell(item.name),
            cell(f"{item.task_id} r{item.revision}"),
            word(documents.rollout_state(item)),
            cell(str(item.wave)),
            cell(moment(instant(item.created_at))),
            cell(item.reason_code),
        )
    return made


def members(items: Iterable[rollout_pb2.RolloutMember]) -> Table:
    """One row a phone."""
    made = table("Device", "Wave", "State", "Tries", "Execution", FREE_TEXT)
    made.columns[4].no_wrap = True
    for item in items:
        outcome = documents.outcome_of(item.outcome) if item.outcome else documents.member_state(item)
        retry = instant(item.retry_at)
        why = item.reason or (f"again at {moment(retry)}" if retry is not None else "")
        made.add_row(
            cell(item.device),
            cell(wave_name(item.wave)),
            word(outcome),
            cell(str(item.tries)),
            cell(item.execution_id),
            cell(why),
        )
    return made


def decisions(items: Iterable[rollout_pb2.RolloutDecision]) -> Table:
    """One row a decision."""
    made = table("When", "Wave", "Rule", "Why")
    for item in items:
        wave = str(item.wave) if item.wave else ""
        made.add_row(cell(moment(instant(item.at))), cell(wave), cell(item.rule), cell(item.sentence))
    return made


def membership(items: Iterable[rollout_pb2.RolloutMembershipChange]) -> Table:
    """One row a phone that joined, left or changed waves."""
    made = table("When", "Device", "Movement", "Wave", "Why")
    for item in items:
        made.add_row(
            cell(moment(instant(item.at))),
            cell(item.device),
            cell(item.movement),
            cell(wave_name(item.wave)),
            cell(item.reason),
        )
    return made


def plan(item: rollout_pb2.RolloutPlan, *, example: bool) -> Group:
    """What a rollout would do. ``example``: which phones are in which wave is known when it has its id only."""
    top = facts(
        ("Task", cell(f"{item.task_id} r{item.revision}")),
        ("Phones", cell(_phones(item))),
        ("Offline", cell(_names(item.offline))),
        ("One run", cell(f"at most {duration(item.bound_s)}" if item.bound_s else "")),
    )
    made = table("Wave", "Phones", "For example" if example else "Which", "Gate")
    for wave in item.waves:
        made.add_row(
            cell(wave_name(wave.number)), cell(str(len(wave.devices))), cell(_names(wave.devices)), cell(wave.gate)
        )
    return Group(top, Text(), made)


def _phones(item: rollout_pb2.RolloutPlan) -> str:
    busy = f", {item.busy} busy" if item.busy else ""
    backlog = f"; {item.backlog} executions wait on them already" if item.backlog else ""
    offline = f", {len(item.offline)} offline" if item.offline else ""
    return f"{item.members}{offline}{busy}{backlog}"


def _names(names: Sequence[str]) -> str:
    """As many names as fit, and how many more there are."""
    text = ", ".join(names)
    if len(text) <= DEVICES_LENGTH:
        return text
    shown: list[str] = []
    for name in names:
        if len(", ".join([*shown, name])) > DEVICES_LENGTH:
            break
        shown.append(name)
    return f"{', '.join(shown) or cut(names[0], DEVICES_LENGTH)} and {len(names) - max(1, len(shown))} more"
