"""The records of one rollout, what is counted about them, and what one call changes; all of it kept by what changes.

Members are known by their place. Whatever can be counted from the records is counted from them, so that a book made
anew from the same records is the same.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from heapq import heapify, heappop, heappush

from droidfleet_controller.rollouts.planner.exchange import Decided, Start, Withdraw
from droidfleet_controller.rollouts.planner.pace import OpeningTimes, Pace
from droidfleet_controller.rollouts.planner.tally import Tally
from droidfleet_controller.rollouts.rollout import (
    DRY_RUN_PLACE,
    DRY_RUN_WAVE,
    Decision,
    Member,
    MembershipChange,
    Movement,
    Rollout,
    Rule,
    Signature,
)
from droidfleet_controller.rollouts.spec import Gate
from droidfleet_controller.rollouts.states import TERMINAL, UNCOUNTED, MemberState, Outcome, ReasonCode, RolloutState

MAX_SIGNATURES = 100
"""Kinds of failures whose numbers are kept for people."""


class Line:
    """The members of one wave that wait, by place. What no longer waits is passed over when it is met."""

    def __init__(self, places: list[int]) -> None:
        self.places = places
        self.first = 0

    def add(self, place: int) -> None:
        """Puts a place where it belongs among those not passed yet."""
        insort(self.places, place, lo=self.first)


class Book:
    """The records of one rollout as they stand, and what the call that goes on has changed."""

    def __init__(self, rollout: Rollout, members: Iterable[Member], *, opening: OpeningTimes | None) -> None:
        self.rollout = rollout
        self.opening = opening
        self.members: dict[int, Member] = {}
        self.tallies: defaultdict[int, Tally] = defaultdict(Tally)
        self.signatures: Counter[Signature] = Counter()
        self.retrying: defaultdict[Signature | None, set[int]] = defaultdict(set)
        self.live = 0
        self.leaving = 0
        self.remaining = 0
        """Members, the dry run aside, that have not been removed."""
        self.successes = 0
        self.pace = Pace(rollout.spec, rollout.memory.starts)
        self._places: dict[str, int] = {}
        self._delayed: list[tuple[datetime, int]] = []
        self._due: list[int] = []
        lines: defaultdict[int, list[int]] = defaultdict(list)
        for member in sorted(members, key=lambda member: member.place):
            self.members[member.place] = member
            self._count(member, 1)
            if member.place != DRY_RUN_PLACE:
                self._places[member.device] = member.place
            if member.state is MemberState.WAITING:
                lines[member.wave].append(member.place)
            elif member.state is MemberState.RETRYING and member.retry_at is not None:
                self._delayed.append((member.retry_at, member.place))
        heapify(self._delayed)
        self.lines = {wave: Line(places) for wave, places in lines.items()}
        self.last_place = max(self.members, default=0)
        self._begin(rollout.updated_at)

    # One call.

    def _begin(self, now: datetime) -> None:
        self.now = now
        self.before = self.rollout
        self.changed: dict[int, Member] = {}
        self.starts: list[Start] = []
        self.withdraws: list[Withdraw] = []
        self.decisions: list[Decision] = []
        self.log: list[MembershipChange] = []
        self.touched: set[int] = set()
        self.ending = False
        """Somebody ends the rollout in this call."""

    def begin(self, now: datetime) -> None:
        """Begins a call."""
        self._begin(now)

    def finish(self) -> Decided:
        """Ends it: what it changed. Why the rollout waits is not in it."""
        changed = self.rollout is not self.before or bool(self.changed or self.decisions or self.log)
        if changed:
            self.rollout = replace(self.rollout, tick=self.rollout.tick + 1)
        return Decided(
            rollout=self.rollout,
            changed=changed,
            members=tuple(self.changed[place] for place in sorted(self.changed)),
            starts=tuple(self.starts),
            withdraws=tuple(self.withdraws),
            decisions=tuple(self.decisions),
            log=tuple(self.log),
        )

    # The rollout.

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self.rollout.state is RolloutState.RUNNING

    @property
    def stopping(self) -> bool:
        """Whether nothing will be started any more."""
        return self.ending or self.rollout.state is RolloutState.CANCELLING or self.rollout.state in TERMINAL

    def move(self, state: RolloutState, code: ReasonCode = ReasonCode.NONE, reason: str = "") -> None:
        """Puts the rollout into a state; a person's version of it is stale from now on."""
        self.rollout = replace(
            self.rollout,
            state=state,
            reason_code=code,
            reason=reason,
            version=self.rollout.version + 1,
            updated_at=self.now,
            ended_at=self.now if state in TERMINAL else None,
        )
        if state in TERMINAL and self.leaving:
            self._end_leaving()

    def _end_leaving(self) -> None:
        """What members that left still run goes on, and nobody follows it: they must not stand as started for ever."""
        for member in list(self.members.values()):
            if member.state is MemberState.STARTED and member.outcome is Outcome.REMOVED:
                self.put(replace(member, state=MemberState.ENDED, ended_at=self.now))

    def moving(self) -> None:
        """Notes that something moves: the progress deadline counts from now."""
        if self.rollout.moved_at != self.now:
            self.rollout = replace(self.rollout, moved_at=self.now)

    def say(self, rule: Rule, sentence: str, *, wave: int | None = None, **numbers: int | str) -> None:
        """Records a decision."""
        self.decisions.append(
            Decision(
                at=self.now,
                rule=rule,
                wave=self.rollout.wave if wave is None else wave,
                numbers=numbers,
                sentence=sentence,
            )
        )

    def gate(self, wave: int) -> Gate:
        """The gate of a wave from 1 on."""
        return self.rollout.spec.waves[wave - 1].gate

    def next_wave(self) -> int | None:
        """The next wave in which somebody waits; None: there is none."""
        for wave in range(self.rollout.wave + 1, len(self.rollout.spec.waves) + 1):
            if wave in self.tallies and self.tallies[wave].waiting:
                return wave
        return None

    def open_complete(self) -> bool:
        """Whether every member of every open wave has ended."""
        return all(tally.complete for wave, tally in self.tallies.items() if wave <= self.rollout.wave)

    # Members.

    def member(self, device: str) -> Member | None:
        """The member that a device is, the dry run aside."""
        place = self._places.get(device)
        return None if place is None else self.members[place]

    def dry_run(self) -> Member | None:
        """The dry run, if there is one."""
        return self.members.get(DRY_RUN_PLACE)

    def put(self, member: Member) -> None:
        """Takes a member as it is now into the records and the counts."""
        before = self.members.get(member.place)
        if before is not None:
            self._count(before, -1)
        self.members[member.place] = member
        self._count(member, 1)
        self.changed[member.place] = member
        self.touched.add(member.wave)
        self._keep_acknowledged(member.wave)
        if member.place != DRY_RUN_PLACE:
            self._places[member.device] = member.place
            self.last_place = max(self.last_place, member.place)
        if member.state is MemberState.RETRYING and member.retry_at is not None:
            heappush(self._delayed, (member.retry_at, member.place))
        if member.state is MemberState.ENDED and member.outcome not in UNCOUNTED and member.wave != DRY_RUN_WAVE:
            last = max(filter(None, (member.ended_at, self.rollout.last_result_at)), default=None)
            if last != self.rollout.last_result_at:
                self.rollout = replace(self.rollout, last_result_at=last)

    def line_up(self, member: Member) -> None:
        """Puts a waiting member that is new in its wave into the wave's line."""
        self.lines.setdefault(member.wave, Line([])).add(member.place)

    def _count(self, member: Member, by: int) -> None:
        tally = self.tallies[member.wave]
        (tally.add if by > 0 else tally.remove)(member)
        removed = member.outcome is Outcome.REMOVED
        if member.state is MemberState.STARTED:
            self.live += by
            self.leaving += by if removed else 0
        if member.wave == DRY_RUN_WAVE:
            return
        self.remaining += 0 if removed else by
        self.successes += by if member.outcome is Outcome.SUCCEEDED else 0
        if member.signature is not None:
            self.signatures[member.signature] += by
            if member.state is MemberState.RETRYING:
                waiting = self.retrying[member.signature]
                (waiting.add if by > 0 else waiting.discard)(member.place)

    def _keep_acknowledged(self, wave: int) -> None:
        """Failures that turned out to be none are not acknowledged any more."""
        known = self.rollout.memory.acknowledged
        if wave not in known:
            return
        failures = self.tallies[wave].failures
        kept = {code: min(count, failures[code]) for code, count in known[wave].items()}
        if kept != known[wave]:
            self.remember_acknowledged({**known, wave: kept})

    def remember_acknowledged(self, acknowledged: Mapping[int, Mapping[str, int]]) -> None:
        """Keeps which failures somebody has accepted."""
        self.rollout = replace(self.rollout, memory=replace(self.rollout.memory, acknowledged=acknowledged))

    def remember_starts(self) -> None:
        """Keeps how many began in the last minute."""
        starts = self.pace.starts
        if starts != self.rollout.memory.starts:
            self.rollout = replace(self.rollout, memory=replace(self.rollout.memory, starts=starts))

    def remember_soak(self, until: datetime | None) -> None:
        """Keeps when the open wave has soaked."""
        if self.rollout.memory.soak_until != until:
            self.rollout = replace(self.rollout, memory=replace(self.rollout.memory, soak_until=until))

    def remember_signature(self, *signatures: Signature | None) -> None:
        """Keeps for people how many phones failed so now."""
        kept = dict(self.rollout.memory.signatures)
        for signature in filter(None, signatures):
            if not self.signatures[signature]:
                kept.pop(signature, None)
            elif signature in kept or len(kept) < MAX_SIGNATURES:
                kept[signature] = self.signatures[signature]
        if kept != self.rollout.memory.signatures:
            self.rollout = replace(self.rollout, memory=replace(self.rollout.memory, signatures=kept))

    # Who is next.

    def due_retry(self) -> Member | None:
        """The first member, by place, whose next try is due."""
        while self._delayed and self._delayed[0][0] <= self.now:
            retry_at, place = heappop(self._delayed)
            if self._retries_at(place, retry_at):
                heappush(self._due, place)
        while self._due:
            member = self.members[self._due[0]]
            due = member.retry_at is not None and member.retry_at <= self.now
            if due and member.state is MemberState.RETRYING:
                return member
            heappop(self._due)
        return None

    def next_retry_at(self) -> datetime | None:
        """When the next try is due that is not due yet; None: there is none."""
        while self._delayed and not self._retries_at(self._delayed[0][1], self._delayed[0][0]):
            heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    def _retries_at(self, place: int, retry_at: datetime) -> bool:
        member = self.members[place]
        return member.state is MemberState.RETRYING and member.retry_at == retry_at

    def first_waiting(self) -> Member | None:
        """The first member, by place, that waits in an open wave."""
        first: Member | None = None
        for wave, line in self.lines.items():
            if wave > self.rollout.wave:
                continue
            while line.first < len(line.places) and not self._waits(line.places[line.first], wave):
                line.first += 1
            if line.first < len(line.places):
                member = self.members[line.places[line.first]]
                first = member if first is None or member.place < first.place else first
        return first

    def _waits(self, place: int, wave: int) -> bool:
        member = self.members[place]
        return member.wave == wave and member.state is MemberState.WAITING

    def waiting_later(self, wave: int, index: int) -> tuple[int, int, Member] | None:
        """The next member that waits in a wave that is not open, from an index of a wave's line on: the wave, the index
        and the member; None: there is none."""
        for later in range(max(wave, self.rollout.wave + 1), len(self.rollout.spec.waves) + 1):
            line = self.lines.get(later)
            if line is None:
                continue
            start = max(index, line.first) if later == wave else line.first
            for at in range(start, len(line.places)):
                if self._waits(line.places[at], later):
                    return later, at, self.members[line.places[at]]
        return None

    def note_movement(self, member: Member, movement: Movement, reason: str) -> None:
        """Adds a line to the membership log."""
        self.log.append(
            MembershipChange(at=self.now, device=member.device, movement=movement, wave=member.wave, reason=reason)
        )
