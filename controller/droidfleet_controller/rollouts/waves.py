"""Waves before the start: how many members each has, who they are, and what its gate says in numbers. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from droidfleet_controller.rollouts.amounts import HUNDRED_PERCENT, Amount, Count, Percent, duration_text
from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue
from droidfleet_controller.rollouts.spec import Approval, Gate, OnExceeded, Order, Wave

LEAVE_OUT = "Leave the size of the last wave out: it takes the rest."


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveSizes:
    """How many members each wave of a document has; 0 for one that is left out. ``notes`` say which and why, for
    people; with ``issues`` the waves do not fit, and the sizes are no plan."""

    sizes: tuple[int, ...]
    notes: tuple[str, ...] = ()
    issues: tuple[SpecIssue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateNumbers:
    """A gate for a wave of so many counted members. ``stops_at_failure``: 0 when nothing limits them."""

    successes_needed: int
    stops_at_failure: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a phone stands before the start: its place, from 1, and its wave."""

    device: str
    place: int
    wave: int


def sizes(waves: Sequence[Wave], members: int) -> WaveSizes:
    """Sizes of ``waves`` over so many members: percents rounded up and at least 1, the last takes the rest, and one
    that would be empty is left out."""
    found: list[int] = []
    notes: list[str] = []
    issues: list[SpecIssue] = []
    left = members
    for index, wave in enumerate(waves):
        path = f"/waves/{index}" + ("/size" if wave.size is not None else "")
        last = index == len(waves) - 1
        size, issue = _size(wave.size, path, number=index + 1, members=members, left=left, last=last)
        if issue is not None:
            issues.append(issue)
        elif size == 0:
            notes.append(f"Wave {index + 1} is left out: the waves before it take all {members}.")
        found.append(size)
        left -= size
    return WaveSizes(sizes=tuple(found), notes=tuple(notes), issues=tuple(issues))


def places(rollout_id: str, devices: Sequence[str], order: Order) -> list[str]:
    """The devices in the order of their places. By hash, the order differs from rollout to rollout and is always the
    same for one."""
    match order:
        case Order.LISTED:
            return list(devices)
        case Order.HASH:
            return sorted(devices, key=lambda device: (_hash(rollout_id, device), device))
        case _:
            assert_never(order)


def layout(ordered: Sequence[str], found: Sequence[int]) -> list[Place]:
    """Every device with its place and wave. ``found``: the sizes of the waves."""
    waves = [number for number, size in enumerate(found, 1) for _ in range(size)]
    return [Place(device, place, wave) for place, (device, wave) in enumerate(zip(ordered, waves, strict=True), 1)]


def numbers(gate: Gate, members: int) -> GateNumbers:
    """What a gate says of a wave with so many counted members; see `sentence` for how it reads."""
    needed = gate.min_success_percent.of_up(members)
    stops = 0 if gate.max_failures is None else first_exceeding(gate.max_failures, members)
    parts = [f"advances at {needed} of {members}"]
    stopping = "pauses" if gate.on_exceeded is OnExceeded.PAUSE else "cancels"
    if stops:
        parts.append(f"{stopping} at the {ordinal(stops)} failure")
    parts += [
        f"{stopping} at the {ordinal(limit + 1)} {code}"
        for code, limit in sorted(gate.max_failures_by_code.items())
        if limit < members
    ]
    if gate.min_sample > 1:
        parts.append(f"needs {min(gate.min_sample, members)} results")
    if gate.soak:
        parts.append(f"waits {duration_text(gate.soak)} after the last result")
    if gate.approval is Approval.MANUAL:
        parts.append("then a person decides")
    return GateNumbers(successes_needed=needed, stops_at_failure=stops, sentence="; ".join(parts))


def first_exceeding(limit: Amount, members: int) -> int:
    """The first number of failures that exceeds ``limit`` in a wave of so many counted members; 0: none can."""
    match limit:
        case Count():
            first = limit.value + 1
        case Percent():
            first = members * limit.hundredths // HUNDRED_PERCENT + 1
        case _:
            assert_never(limit)
    return first if first <= members else 0


def ordinal(number: int) -> str:
    """As ``1st``, ``12th``, ``23rd``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _size(
    size: Amount | None, path: str, *, number: int, members: int, left: int, last: bool
) -> tuple[int, SpecIssue | None]:
    def wrong(message: str, hint: str) -> SpecIssue:
        return SpecIssue(path, IssueCode.WAVES_DO_NOT_FIT, message, hint)

    wanted: int
    match size:
        case None:
            if last:
                return left, None
            return 0, wrong(
                f"wave {number} has no size and is not the last: only the last wave takes the rest.",
                f"Give it a size, or leave out the waves after it; {left} of {members} members are left for it.",
            )
        case Count():
            wanted = size.value
            if wanted == 0:
                return 0, wrong(f"wave {number} has the size 0: a wave has at least 1 member.", "Leave the wave out.")
            if wanted > left:
                return left, wrong(
                    f"wave {number} wants {wanted}, and {left} of {members} members are left for it.",
                    "Leave this wave out." if left == 0 else f"Make it {left} or less, or the waves before it smaller.",
                )
        case Percent():
            wanted = max(1, size.of_up(members))
            if not last or left == 0:
                wanted = min(wanted, left)
        case _:
            assert_never(size)
    if last and wanted != left:
        return wanted, wrong(
            f"the last wave takes the rest, which is {left} of {members}, and its size {size} says {wanted}.", LEAVE_OUT
        )
    return wanted, None


def _hash(rollout_id: str, device: str) -> bytes:
    return hashlib.sha256(f"{rollout_id}\n{device}".encode()).digest()
