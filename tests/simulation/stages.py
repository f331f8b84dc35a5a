"""What may be expected of rollouts at every step, computed anew from the tables: nothing of the planner is asked.

starts: only while it runs, in open waves, under its limits, in its window; a retry never after what may have acted
waves: none opens below the gate of the one before, nor while too many have failed
counts: each phone once, each member somewhere, an ended rollout with nothing left to do
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction

from droidfleet_controller.rollouts.amounts import HUNDRED_PERCENT, Amount, Count
from droidfleet_controller.rollouts.rollout import DRY_RUN_WAVE
from droidfleet_controller.rollouts.spec import Approval, Gate, Rate, RolloutSpec
from droidfleet_controller.rollouts.states import FAILURES, TERMINAL, UNCOUNTED, MemberState, Outcome, RolloutState
from simulation.history import History
from simulation.ledger import Entry, Ledger, second
from simulation.loop import START

RATE_SPAN_S = 60.0

COMMIT_S = 1.0
"""No transaction takes longer from its decision to its commit."""

EAGER_S = 20.0
"""How long a member that may begin may wait while the controller is well."""

_COMMANDS = ("PromoteRollout", "ResumeRollout")


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member as it is stored."""

    place: int
    device: str
    wave: int
    state: MemberState
    outcome: Outcome
    tries: int
    execution_id: str
    ended_at: float | None


@dataclass(slots=True)
class Stage:
    """One rollout as it was last committed. ``fresh``: what the transaction at hand begins; ``dry_runs``: executions of
    the dry run; ``promotes``: how often somebody promoted it; ``accepted``: the failures of each wave that somebody
    went on with."""

    rollout_id: str
    spec: RolloutSpec
    repeatable: bool
    state: RolloutState = RolloutState.RUNNING
    wave: int = DRY_RUN_WAVE
    members: list[MemberRow] = field(default_factory=list)
    begun: list[Entry] = field(default_factory=list)
    fresh: list[Entry] = field(default_factory=list)
    dry_runs: set[str] = field(default_factory=set)
    promotes: int = 0
    commands: int = 0
    accepted: dict[int, int] = field(default_factory=dict)
    may_begin_since: float | None = None

    @property
    def terminal(self) -> bool:
        """Whether it has ended."""
        return self.state in TERMINAL

    def of_wave(self, wave: int) -> list[MemberRow]:
        """Its members in a wave."""
        return [member for member in self.members if member.wave == wave]

    def tries_like(self, entry: Entry) -> list[Entry]:
        """What was begun on the same phone: dry runs for a dry run, else the member's own tries."""
        is_dry_run = entry.execution_id in self.dry_runs
        return [
            each
            for each in self.begun
            if each.device == entry.device and (each.execution_id in self.dry_runs) is is_dry_run
        ]


class Stages:
    """The rollouts. `committed` is called after the ledger has taken the same transaction."""

    def __init__(self, history: History, ledger: Ledger) -> None:
        self._history = history
        self._expect = history.expect
        self._ledger = ledger
        self._decisions = 0
        self.stages: dict[str, Stage] = {}
        ledger.on_created = self._created
        ledger.truth.on_sent = self._sent

    def going_on(self) -> list[Stage]:
        """Those that have not ended."""
        return [stage for stage in self.stages.values() if not stage.terminal]

    def _created(self, entry: Entry) -> None:
        stage = self.stages.get(entry.run_id)
        if stage is not None:
            stage.fresh.append(entry)

    def _sent(self, execution_id: str) -> None:
        """Something touches a phone: no later try of the same phone may exist, unless that does no harm."""
        entry = self._ledger.entries[execution_id]
        stage = self.stages.get(entry.run_id)
        if stage is None or stage.repeatable:
            return
        for other in stage.tries_like(entry):
            if other.try_number > entry.try_number:
                self._history.finding(f"{execution_id} acts, and {other.execution_id} was begun as its retry")

    def committed(self, rollout_ids: list[str], raw: sqlite3.Connection, now: float) -> None:
        """Looks at the rollouts that a transaction changed."""
        for rollout_id in rollout_ids:
            self._look(rollout_id, raw, now)

    def _look(self, rollout_id: str, raw: sqlite3.Connection, now: float) -> None:
        query = "SELECT state, reason_code, wave, spec, subject FROM rollouts WHERE rollout_id = ?"
        state, code, wave, spec, subject = raw.execute(query, (rollout_id,)).fetchone()
        stage = self.stages.get(rollout_id)
        if stage is None:
            parsed = RolloutSpec.model_validate_json(spec)
            stage = self.stages[rollout_id] = Stage(rollout_id, parsed, json.loads(subject)["repeatable"])
        before, stage.state = stage.state, RolloutState(state)
        before_wave, stage.wave = stage.wave, wave
        rows = raw.execute(
            "SELECT place, device, wave, state, outcome, tries, execution_id, ended_at FROM rollout_members"
            " WHERE rollout_id = ? ORDER BY place",
            (rollout_id,),
        )
        stage.members = [
            MemberRow(
                place,
                device,
                wave,
                MemberState(state),
                Outcome(outcome),
                tries,
                execution_id,
                ended_at=None if ended_us is None else second(ended_us),
            )
            for place, device, wave, state, outcome, tries, execution_id, ended_us in rows
        ]
        self._note_decisions(rollout_id, raw)
        if (before, before_wave) != (stage.state, stage.wave):
            self._history.note("database", f"{rollout_id} is {stage.state} {code} in wave {stage.wave}")
        self._expect(before not in TERMINAL or stage.state is before, f"{rollout_id} goes on after {before}")
        promoted = self._note_commands(stage, raw)
        self._check_members(stage)
        self._check_starts(stage, before, now)
        if stage.wave > before_wave:
            self._check_opening(stage, before_wave, promoted, now)
        self._expect(stage.wave >= before_wave, f"{rollout_id} goes back to wave {stage.wave}")
        self._check_failures(stage)
        if stage.terminal and before not in TERMINAL:
            self._check_end(stage, promoted)

    def _note_decisions(self, rollout_id: str, raw: sqlite3.Connection) -> None:
        query = (
            "SELECT number, rule, sentence FROM rollout_decisions WHERE rollout_id = ? AND number > ? ORDER BY number"
        )
        for number, rule, sentence in raw.execute(query, (rollout_id, self._decisions)).fetchall():
            self._decisions = max(self._decisions, number)
            self._history.note("planner", f"{rollout_id} {rule}: {sentence}")

    def _note_commands(self, stage: Stage, raw: sqlite3.Connection) -> bool:
        """Whether this transaction carries out a promotion; and what somebody has seen when they let it go on."""
        query = "SELECT command, count(*) FROM audit WHERE subject = ? GROUP BY command"
        counts = dict(raw.execute(query, (stage.rollout_id,)).fetchall())
        promotes = int(counts.get("PromoteRollout", 0))
        commands = sum(counts.get(command, 0) for command in _COMMANDS)
        if commands > stage.commands:
            stage.accepted = {wave: _failures(stage.of_wave(wave)) for wave in range(1, stage.wave + 1)}
        promoted = promotes > stage.promotes
        stage.promotes, stage.commands = promotes, commands
        return promoted

    # Members.

    def _check_members(self, stage: Stage) -> None:
        expect, name = self._expect, stage.rollout_id
        waves = len(stage.spec.waves)
        twice = [device for device, count in Counter(m.device for m in stage.members if m.wave).items() if count > 1]
        expect(not twice, f"{name} has {twice} twice")
        for member in stage.members:
            what = f"{name}: {member.device} in wave {member.wave}"
            expect(0 <= member.wave <= waves, f"{what} of {waves}")
            execution = self._ledger.entries.get(member.execution_id)
            match member.state:
                case MemberState.WAITING:
                    expect(member.tries == 0 and not member.execution_id, f"{what} waits after {member.tries} tries")
                case MemberState.STARTED:
                    expect(member.wave <= stage.wave, f"{what} is started, and wave {stage.wave} is open")
                    expect(execution is not None and execution.run_id == name, f"{what} is started with no execution")
                case MemberState.RETRYING:
                    expect(execution is not None and execution.terminal, f"{what} retries what has not ended")
                case MemberState.ENDED:
                    expect(member.outcome is not Outcome.NONE, f"{what} has ended somehow")
            if member.outcome is Outcome.SUCCEEDED:
                expect(execution is not None and execution.state == "SUCCEEDED", f"{what} has not succeeded")

    # Starts.

    def _check_starts(self, stage: Stage, before: RolloutState, now: float) -> None:
        fresh, stage.fresh = stage.fresh, []
        spec, expect, name = stage.spec, self._expect, stage.rollout_id
        for entry in fresh:
            expect(before is RolloutState.RUNNING, f"{name} begins {entry.execution_id} while it is {before}")
            self._check_try(stage, entry)
            stage.begun.append(entry)
            expect(_window_open(spec, entry.created_at), f"{name} begins {entry.execution_id} outside its window")
        if not fresh:
            return
        live = sum(not entry.terminal for entry in stage.begun)
        expect(spec.max_concurrent is None or live <= spec.max_concurrent, f"{name} has {live} at a time")
        allowed = _rate(stage)
        newest = max(entry.created_at for entry in fresh)
        lately = sum(newest - RATE_SPAN_S < entry.created_at <= newest for entry in stage.begun)
        expect(allowed is None or lately <= allowed, f"{name} began {lately} within a minute; {allowed} are allowed")

    def _check_try(self, stage: Stage, entry: Entry) -> None:
        expect, name = self._expect, f"{entry.execution_id}, try {entry.try_number} on {entry.device}"
        if any(member.execution_id == entry.execution_id for member in stage.of_wave(DRY_RUN_WAVE)):
            stage.dry_runs.add(entry.execution_id)
        earlier = stage.tries_like(entry)
        expect(entry.try_number == len(earlier) + 1, f"{name}, comes after {len(earlier)}")
        expect(entry.try_number <= stage.spec.retry.max_attempts, f"{name}, is more than is allowed")
        if not earlier:
            return
        last = earlier[-1]
        expect(last.terminal, f"{name}, begins while {last.execution_id} is {last.state}")
        expect(last.state != "SUCCEEDED", f"{name}, follows a success")
        acted = self._ledger.truth.may_have_acted(last.execution_id)
        expect(stage.repeatable or not acted, f"{name}, follows {last.execution_id}, which may have acted")
        due = (last.ended_at or 0.0) + stage.spec.retry.delay / timedelta(seconds=1) - COMMIT_S
        expect(entry.created_at >= due, f"{name}, begins before its delay is over")

    # Gates.

    def _check_opening(self, stage: Stage, left: int, promoted: bool, now: float) -> None:
        """A wave opened. ``left``: the one that was open before."""
        name = f"{stage.rollout_id} opens wave {stage.wave}"
        if promoted:
            return
        if left == DRY_RUN_WAVE:
            dry_runs = [member for member in stage.members if member.wave == DRY_RUN_WAVE]
            failed = [member for member in dry_runs if member.outcome is not Outcome.SUCCEEDED]
            self._expect(not failed, f"{name}, and the dry run did not succeed")
            self._expect(stage.spec.approval is Approval.AUTO, f"{name}, and nobody approved it")
            return
        gate = stage.spec.waves[left - 1].gate
        members = [member for member in stage.of_wave(left) if member.outcome is not Outcome.REMOVED]
        for member in members:
            self._expect(member.state is MemberState.ENDED, f"{name}, and {member.device} of {left} is {member.state}")
        self._expect(_passes(gate, stage.of_wave(left)), f"{name} below the gate of wave {left}")
        self._expect(gate.approval is Approval.AUTO, f"{name}, and nobody approved it")
        soaked = max((member.ended_at or 0.0 for member in members), default=0.0) + gate.soak / timedelta(seconds=1)
        self._expect(now >= soaked, f"{name} before wave {left} has soaked")

    def _check_failures(self, stage: Stage) -> None:
        if stage.state is not RolloutState.RUNNING:
            return
        for wave in range(1, stage.wave + 1):
            members = stage.of_wave(wave)
            limit = stage.spec.waves[wave - 1].gate.max_failures
            failures = _failures(members)
            over = limit is not None and failures > stage.accepted.get(wave, 0) and _exceeds(failures, limit, members)
            self._expect(
                not over, f"{stage.rollout_id} runs on with {failures} failures in wave {wave}; {limit} allowed"
            )

    def _check_end(self, stage: Stage, promoted: bool) -> None:
        name = f"{stage.rollout_id} is {stage.state}"
        for member in stage.members:
            open_dry_run = member.wave == DRY_RUN_WAVE and stage.state is not RolloutState.SUCCEEDED
            ended = member.state is MemberState.ENDED or open_dry_run
            self._expect(ended, f"{name}, and {member.device} is {member.state}")
        if stage.state is RolloutState.SUCCEEDED and not promoted:
            gate = stage.spec.waves[stage.wave - 1].gate
            self._expect(_passes(gate, stage.of_wave(stage.wave)), f"{name} below the gate of its last wave")

    # Time.

    def expect_eagerness(self, now: float, *, well_since: float) -> None:
        """No member that may begin waits for long while the controller is well."""
        for stage in self.going_on():
            if not self._may_begin(stage, now):
                stage.may_begin_since = None
                continue
            since = stage.may_begin_since = now if stage.may_begin_since is None else stage.may_begin_since
            if now - max(since, well_since) > EAGER_S:
                self._history.finding(f"{stage.rollout_id} begins nothing since {since:.1f}, and may")

    def _may_begin(self, stage: Stage, now: float) -> bool:
        spec = stage.spec
        waiting = any(member.state is MemberState.WAITING and member.wave <= stage.wave for member in stage.members)
        live = sum(not entry.terminal for entry in stage.begun)
        allowed = _rate(stage)
        lately = sum(now - RATE_SPAN_S - 1 < entry.created_at for entry in stage.begun)
        return (
            stage.state is RolloutState.RUNNING
            and waiting
            and (spec.max_concurrent is None or live < spec.max_concurrent)
            and (allowed is None or lately < allowed)
            and _window_open(spec, now)
        )


def _failures(members: list[MemberRow]) -> int:
    return sum(member.state is MemberState.ENDED and member.outcome in FAILURES for member in members)


def _counted(members: list[MemberRow]) -> list[MemberRow]:
    return [member for member in members if member.outcome not in UNCOUNTED]


def _exceeds(failures: int, limit: Amount, members: list[MemberRow]) -> bool:
    if isinstance(limit, Count):
        return failures > limit.value
    return failures * HUNDRED_PERCENT > limit.hundredths * len(_counted(members))


def _passes(gate: Gate, members: list[MemberRow]) -> bool:
    counted = _counted(members)
    succeeded = sum(member.outcome is Outcome.SUCCEEDED for member in counted)
    results = sum(member.state is MemberState.ENDED for member in counted)
    sample = min(gate.min_sample, sum(member.outcome is not Outcome.REMOVED for member in members))
    if results < max(1, sample):
        return False
    return succeeded * HUNDRED_PERCENT >= gate.min_success_percent.hundredths * len(counted)


def _rate(stage: Stage) -> int | None:
    rate = stage.spec.rate_per_minute
    if not isinstance(rate, Rate):
        return rate
    successes = sum(member.wave > DRY_RUN_WAVE and member.outcome is Outcome.SUCCEEDED for member in stage.members)
    raised = rate.base * Fraction(str(rate.factor)) ** (successes // rate.raise_after)
    return min(rate.limit, int(raised))


def _window_open(spec: RolloutSpec, at: float) -> bool:
    """The windows of the scenarios are open in even minutes."""
    return spec.window is None or (START + timedelta(seconds=at)).minute % 2 == 0
