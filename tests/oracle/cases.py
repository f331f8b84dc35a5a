"""Random rollouts, fleets and happenings, each made from a number; the planner is held against the oracle all along."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from droidfleet_controller.dispatch.execution import TaskText
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts import waves
from droidfleet_controller.rollouts.amounts import Count, Percent
from droidfleet_controller.rollouts.planner.plan import (
    Change,
    Decided,
    Joined,
    Left,
    RetryBudget,
    RolloutPlan,
    TryEnded,
)
from droidfleet_controller.rollouts.rollout import Member, Rollout, Signature, Subject
from droidfleet_controller.rollouts.spec import (
    Approval,
    Deadlines,
    DryRun,
    Gate,
    Offline,
    OnExceeded,
    Order,
    Rate,
    Retry,
    RolloutSpec,
    Target,
    Wave,
)
from droidfleet_controller.rollouts.states import TERMINAL, Control, RolloutState
from droidfleet_shared.errors import DroidfleetError
from oracle import rules
from oracle.rules import MINUTE, SECOND, Budget, Ended, Moved, Oracle, Phone

EPOCH = datetime(2027, 3, 1, tzinfo=UTC)

MAX_STEPS = 25
LARGEST = 500
UNLIMITED = 10**6

CODES = ("TARGET_NOT_FOUND", "OUTCOME_UNKNOWN", "TARGET_AMBIGUOUS", "ACTION_FAILED", "VALUE_MISSING")
FAILED_STATES = ("FAILED", "FAILED", "FAILED", "FAILED", "TIMED_OUT", "LOST", "EXPIRED", "REJECTED", "CANCELLED")


class MismatchError(AssertionError):
    """The planner and the oracle differ, or the planner breaks a promise. Shows the case's number and its history."""


def instant(at: int) -> datetime:
    """A time of the oracle for the planner."""
    return EPOCH + timedelta(microseconds=at)


def microseconds(at: datetime) -> int:
    """A time of the planner for the oracle."""
    return (at - EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True)
class Opening:
    """Open for the first ``length`` minutes of every ``period``."""

    period: int
    length: int

    def opens(self, at: int) -> bool:
        return at // MINUTE % self.period < self.length

    def is_open(self, now: datetime) -> bool:
        return self.opens(microseconds(now))

    def next_opening(self, now: datetime) -> datetime | None:
        span = self.period * MINUTE
        return instant((microseconds(now) // span + 1) * span)


ALWAYS = Opening(1, 1)


class Case:
    """One random rollout from its start to its end, or for `MAX_STEPS`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.random = random = Random(number)
        self.history: list[tuple[object, ...]] = []
        count = _size(random)
        self.devices = [f"p{index}" for index in range(count)]
        self.spec = _spec(random, count)
        self.opening = ALWAYS if random.random() < 0.8 else Opening(random.choice([2, 5, 60]), 1)
        self.offline = {device for device in self.devices if random.random() < self.offline_share()}
        self.ids = _ids()
        self.oracle_ids = _ids()
        self.budget, self.oracle_budget = RetryBudget(), Budget()
        for _ in range(random.choice([0, 0, 0, 8, 9, 10])):  # of other rollouts
            self.budget.note(EPOCH, retries=1)
            self.oracle_budget.retries.append(0)
        self.now = 0
        self.success = random.choice([1.0, 0.95, 0.8, 0.4])
        self.screens = random.choice([1, 1, 3])
        self.movement = random.choice([0.05, 0.05, 0.05, 0.6])
        self.live: list[tuple[str, str]] = []
        self.lost: list[tuple[str, str]] = []
        self.over: list[TryEnded] = []
        found = waves.sizes(self.spec.waves, count)
        rollout_id = f"r-{number}"
        layout = waves.layout(waves.places(rollout_id, self.devices, self.spec.order), found.sizes)
        members = [Member(device=place.device, place=place.place, wave=place.wave) for place in layout]
        phones = [Phone(place.device, place.place, place.wave) for place in layout]
        if self.spec.dry_run is not None:
            members.insert(0, Member(device=self.spec.dry_run.device, place=0, wave=0))
            phones.insert(0, Phone(self.spec.dry_run.device, 0, 0))
        repeatable = random.random() < 0.3
        rollout = Rollout(
            rollout_id=rollout_id,
            spec=self.spec,
            subject=Subject(
                task_id="t",
                revision=1,
                text=TaskText(sha256="", add_name=False, add_revision=False),
                step_count=1,
                bound_s=60,
                repeatable=repeatable,
            ),
            state=RolloutState.RUNNING,
            wave_sizes=found.sizes,
            created_at=EPOCH,
            updated_at=EPOCH,
            moved_at=EPOCH,
        )
        self.members = {member.place: member for member in members}
        self.plan = self._plan(rollout)
        self.oracle = Oracle(
            self.spec,
            phones,
            rollout_id=rollout_id,
            repeatable=repeatable,
            last_wave=max(place.wave for place in layout),
            now=0,
            new_id=lambda: next(self.oracle_ids),
            opens=self.opening.opens,
        )

    def offline_share(self) -> float:
        return self.random.choice([0, 0, 0.1, 0.6])

    def run(self) -> None:
        """Runs it.

        Raises:
            MismatchError
        """
        decided = self.decide([], UNLIMITED)
        for _ in range(MAX_STEPS):
            if decided.rollout.state in TERMINAL and not (self.lost and self.random.random() < 0.5):
                break
            decided = self.step(decided)
        self.compare_members(self.oracle.phones)

    def step(self, decided: Decided) -> Decided:
        """Something happens, or nothing but time."""
        random = self.random
        if random.random() < 0.1:
            self.plan = self._plan(self.plan.rollout)
            self.history.append(("made anew",))
        if random.random() < 0.1 and self.devices:
            self.offline ^= set(random.sample(self.devices, random.randint(1, min(3, len(self.devices)))))
            return self.decide([], UNLIMITED)
        stands = decided.rollout.state in (RolloutState.PAUSED, RolloutState.AWAITING_APPROVAL)
        if random.random() < (0.7 if stands else 0.04):
            self.command([])
            return self.decide([], UNLIMITED)
        if random.random() < 0.15 or not self.live:
            decided = self.quiet(decided)
        self.now += random.choice([0, 1, random.randrange(20 * SECOND)])
        changes = self.changes()
        if random.random() < 0.06:
            self.command(changes)
            changes = []
        return self.decide(changes, random.choice([1, 3, UNLIMITED, UNLIMITED]))

    def quiet(self, decided: Decided) -> Decided:
        """Only time passes: before the time to look again nothing changes, and at that time something does."""
        look_at = None if decided.look_at is None else microseconds(decided.look_at)
        far = self.now + self.random.choice([SECOND, MINUTE, 100 * 24 * 60 * MINUTE])
        if look_at is None or far < look_at:
            self.now = far
            self._hold(not self.decide([], UNLIMITED).changed, "something changed before its time")
            return decided
        if look_at > self.now:
            self.now = look_at - 1
            self._hold(not self.decide([], UNLIMITED).changed, "something changed before its time")
            self.now = look_at
        later = self.decide([], UNLIMITED)
        self._hold(later.changed, "nothing changed at the time to look again")
        return later

    def changes(self) -> list[Change]:
        """What is told next: results, also late, repeated and corrected ones, and phones that join or leave."""
        random = self.random
        found: list[Change] = []
        random.shuffle(self.live)
        several = random.randint(0, max(1, len(self.live) * 2 // 3)) if self.live else 0
        found += [self.ended(*self.live.pop()) for _ in range(several)]
        if self.lost and random.random() < 0.3:
            found.append(self.ended(*self.lost.pop(random.randrange(len(self.lost)))))
        if self.over and random.random() < 0.1:
            found.append(random.choice(self.over))
        while random.random() < self.movement:
            device = random.choice([*self.devices[:9], f"n{random.randrange(5)}"])
            if random.random() < 0.5:
                found.append(Joined(device=device, values_id="", at=instant(self.now)))
            else:
                found.append(Left(device=device, at=instant(self.now)))
        return found

    def ended(self, device: str, execution_id: str) -> TryEnded:
        """A random end of an execution."""
        random = self.random
        good = random.random() < self.success
        state = "SUCCEEDED" if good else random.choice(FAILED_STATES)
        code = random.choice(CODES) if random.random() < 0.3 else CODES[0]
        code = {"SUCCEEDED": "OK", "FAILED": code, "TIMED_OUT": "TASK_TIMEOUT", "LOST": "AGENT_SILENT"}.get(
            state, state
        )
        if state == "LOST":
            self.lost.append((device, execution_id))
        change = TryEnded(
            device=device,
            execution_id=execution_id,
            state=ExecutionState(state),
            signature=Signature(code, f"s{random.randrange(self.screens)}"),
            may_have_acted=random.random() < 0.2,
            reason=code,
            at=instant(max(0, self.now - random.choice([0, 0, SECOND]))),
        )
        self.over.append(change)
        return change

    # The planner beside the oracle.

    def decide(self, changes: list[Change], limit: int) -> Decided:
        self.history.append((self.now, "decide", limit, changes, "offline", sorted(self.offline)))
        for change in changes:
            self.plan.take(change)
        decided = self.plan.decide(instant(self.now), offline=self.offline, budget=self.budget, limit=limit)
        self.oracle.decide(
            [_plain(change) for change in changes],
            now=self.now,
            offline=self.offline,
            budget=self.oracle_budget,
            limit=limit,
        )
        self.compare(decided)
        ended = decided.rollout.state in TERMINAL
        at_once = decided.look_at == instant(self.now)
        self._hold(bool(decided.waits) or at_once or ended, "it goes on and does not say why it waits")
        if limit == UNLIMITED and self.random.random() < 0.2:
            again = self.plan.decide(instant(self.now), offline=self.offline, budget=self.budget, limit=limit)
            self._hold(not again.changed and again.look_at == decided.look_at, "the same call decided more")
        return decided

    def command(self, changes: list[Change]) -> None:
        """A random command, mostly one that fits."""
        random = self.random
        rollout = self.plan.rollout
        control = random.choice([*Control, Control.PROMOTE, Control.PROMOTE, Control.RESUME, Control.RESUME])
        if control in (Control.CANCEL, Control.ABORT) and random.random() < 0.7:
            control = Control.PAUSE
        version = rollout.version - (random.random() < 0.05)
        self.history.append((self.now, control.value, version, changes))
        for change in changes:
            self.plan.take(change)
        plain = [_plain(change) for change in changes]
        refusal = self.oracle.command(control, plain, version=version, now=self.now)
        ended = not refusal and control in (Control.CANCEL, Control.ABORT)
        try:
            decided = self.plan.command(control, version=version, now=instant(self.now), actor="ann", reason="")
        except DroidfleetError as error:
            self._hold(error.code == refusal, f"refused as {error.code}, should be {refusal or 'done'}")
        else:
            self._hold(not refusal, f"done, should be refused as {refusal}")
            self.compare(decided)
        if not ended:
            self._told(plain)

    def _told(self, plain: list[Ended | Moved]) -> None:
        """The planner was told before the command and decides after it; so does the oracle."""
        self.history.append((self.now, "decide what was told before"))
        decided = self.plan.decide(instant(self.now), offline=self.offline, budget=self.budget)
        self.oracle.decide(plain, now=self.now, offline=self.offline, budget=self.oracle_budget, limit=UNLIMITED)
        self.compare(decided)

    def compare(self, decided: Decided) -> None:
        """Holds what was decided against the oracle.

        Raises:
            MismatchError
        """
        oracle, rollout = self.oracle, decided.rollout
        self.history.append(("->", decided))
        self._same("state", (rollout.state.value, rollout.reason_code.value), (oracle.state, oracle.code))
        self._same("wave and version", (rollout.wave, rollout.version), (oracle.wave, oracle.version))
        self._same("starts", [(start.device, start.try_number) for start in decided.starts], oracle.started)
        withdrawn = sorted((drawn.execution_id, drawn.fence, drawn.unless_begun) for drawn in decided.withdraws)
        self._same("withdrawals", withdrawn, sorted(oracle.withdrawn))
        for member in decided.members:
            self.members[member.place] = member
        places = {member.place for member in decided.members}
        whole = self.random.random() < 0.1
        self.compare_members([phone for phone in oracle.phones if whole or phone.place in places])
        tick = decided.changed or not (decided.members or decided.decisions)
        self._hold(tick, "something changed without a word of it")
        self.live += [(start.device, start.execution_id) for start in decided.starts]

    def compare_members(self, phones: list[Phone]) -> None:
        """Holds members as they were last told against the oracle's.

        Raises:
            MismatchError
        """
        told = [_row(self.members[phone.place]) for phone in phones if phone.place in self.members]
        self._same("members", told, [_phone_row(phone) for phone in phones])

    def _plan(self, rollout: Rollout) -> RolloutPlan:
        return RolloutPlan(rollout, self.members.values(), new_id=lambda: next(self.ids), opening=self.opening)

    def _same(self, what: str, planner: object, oracle: object) -> None:
        if planner != oracle:
            raise MismatchError(self._story(f"{what}: the planner says\n{planner}\nand the oracle\n{oracle}"))

    def _hold(self, holds: bool, what: str) -> None:
        if not holds:
            raise MismatchError(self._story(what))

    def _story(self, what: str) -> str:
        return "\n".join([f"case {self.number}", repr(self.spec), *map(_told, self.history), what])


def _told(line: tuple[object, ...]) -> str:
    """A line of the history for people."""
    decided = line[-1]
    if not isinstance(decided, Decided):
        return " ".join(map(str, line))
    rollout = decided.rollout
    starts = [(start.device, start.try_number) for start in decided.starts]
    sentences = "".join(f"\n     {decision.sentence}" for decision in decided.decisions)
    stands = f"{rollout.state} {rollout.reason_code} wave {rollout.wave} version {rollout.version}"
    return f"  -> {stands} starts {starts} look at {decided.look_at}{sentences}"


def _plain(change: Change) -> Ended | Moved:
    if not isinstance(change, TryEnded):
        return Moved(change.device, isinstance(change, Joined))
    return Ended(
        device=change.device,
        execution=change.execution_id,
        state=change.state.value,
        signature=_signature(change.signature),
        acted=change.may_have_acted,
        at=microseconds(change.at),
    )


def _signature(signature: Signature) -> rules.Signature:
    return signature.code, signature.step_id, signature.screen


def _row(member: Member) -> tuple[object, ...]:
    return (
        member.place,
        member.device,
        member.wave,
        member.state.value,
        member.outcome.value,
        member.tries,
        member.execution_id,
        None if member.retry_at is None else microseconds(member.retry_at),
        None if member.signature is None else _signature(member.signature),
    )


def _phone_row(phone: Phone) -> tuple[object, ...]:
    return (
        phone.place,
        phone.device,
        phone.wave,
        phone.state,
        phone.outcome,
        phone.tries,
        phone.execution,
        phone.retry_at,
        phone.signature,
    )


def _ids() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"x-{number}"


def _size(random: Random) -> int:
    chance = random.random()
    if chance < 0.7:
        return random.randint(1, 6)
    if chance < 0.95:
        return random.randint(1, 20)
    return random.randint(1, 60) if chance < 0.998 else random.randint(1, LARGEST)


def _spec(random: Random, members: int) -> RolloutSpec:
    def sometimes(share: float) -> bool:
        return random.random() < share

    def seconds(*choices: int) -> timedelta:
        return timedelta(seconds=random.choice(choices))

    def amount() -> Count | Percent:
        return Count(random.randint(0, 3)) if sometimes(0.5) else Percent(random.choice([0, 500, 1_000, 3_333, 5_000]))

    def gate() -> Gate:
        return Gate(
            min_success_percent=Percent(random.choice([0, 5_000, 6_667, 9_000, 10_000])),
            max_failures=amount() if sometimes(0.5) else None,
            on_exceeded=OnExceeded.CANCEL if sometimes(0.3) else OnExceeded.PAUSE,
            max_failures_by_code={code: random.randint(0, 2) for code in CODES[:3] if sometimes(0.1)},
            min_sample=random.choice([1, 1, 2, 5]),
            soak=seconds(0, 0, 0, 15, 300),
            approval=Approval.MANUAL if sometimes(0.2) else Approval.AUTO,
        )

    sizes: list[Count | Percent | None] = []
    left = members
    for _ in range(random.choice([0, 1, 1, 2, 3])):
        if left and sometimes(0.5):
            sizes.append(Count(random.randint(1, max(1, left // 2))))
        else:
            sizes.append(Percent(random.choice([100, 1_000, 2_500, 5_000])))
        left = members - sum(waves.sizes([*(Wave(size=size) for size in sizes), Wave()], members).sizes[:-1])
    rate: int | Rate | None = None
    if sometimes(0.3):
        rate = random.choice([1, 3, 20])
    elif sometimes(0.2):
        rate = Rate(
            base=random.randint(1, 3),
            factor=random.choice([1.0, 1.5, 2.0, 1.25]),
            raise_after=random.randint(1, 3),
            limit=random.choice([4, 1_000]),
        )
    retry = Retry()
    if sometimes(0.6):
        retry = Retry(
            max_attempts=random.randint(2, 4),
            delay=seconds(0, 1, 30),
            backoff=random.choice([1.0, 2.0, 1.5]),
            jitter=Percent(random.choice([0, 1_000, 10_000])),
            only_codes=("TARGET_NOT_FOUND", "AGENT_SILENT") if sometimes(0.2) else (),
            breaker=random.choice([2, 2, 3, 10]),
        )
    dry_run = DryRun(device=random.choice(["p0", "v"])) if sometimes(0.15) else None
    return RolloutSpec(
        task="t",
        target=Target(query="q"),
        order=random.choice(list(Order)),
        waves=tuple(Wave(size=size, gate=gate()) for size in [*sizes, None]),
        max_concurrent=random.randint(1, max(1, members)) if sometimes(0.4) else None,
        rate_per_minute=rate,
        retry=retry,
        offline=random.choice(list(Offline)),
        deadlines=Deadlines(progress=seconds(20, 600, 86_400, 86_400)),
        dry_run=dry_run,
        approval=Approval.MANUAL if sometimes(0.1) else Approval.AUTO,
    )
