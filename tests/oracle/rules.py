"""The rules, plainly. Times are whole microseconds, percents whole hundredths. Nothing here is the planner's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from droidfleet_controller.rollouts.amounts import Count
from droidfleet_controller.rollouts.spec import Gate, Rate, RolloutSpec

SECOND = 1_000_000
MINUTE = 60 * SECOND

FAILURES = {"FAILED", "TIMED_OUT", "SILENT", "UNKNOWN", "REJECTED", "EXPIRED"}
NEVER_AGAIN = {"TARGET_AMBIGUOUS", "INVALID_TASK", "VALUE_MISSING", "NOT_SUPPORTED", "AGENT_MISMATCH", "CANCELLED"}
ENDS = {"SUCCEEDED", "FAILED", "CANCELLED", "ABORTED"}
GATE_PAUSES = {"BELOW_THRESHOLD", "SAMPLE_TOO_SMALL", "DRY_RUN_FAILED"}

Signature = tuple[str, str, str]


def us(duration: timedelta) -> int:
    """A duration in microseconds."""
    return duration // timedelta(microseconds=1)


@dataclass
class Phone:
    """A member."""

    device: str
    place: int
    wave: int
    state: str = "WAITING"
    outcome: str = ""
    tries: int = 0
    execution: str = ""
    retry_at: int | None = None
    signature: Signature | None = None

    @property
    def removed(self) -> bool:
        return self.outcome == "REMOVED"

    @property
    def failed(self) -> bool:
        return self.state == "ENDED" and self.outcome in FAILURES

    @property
    def code(self) -> str:
        return self.signature[0] if self.signature else self.outcome

    @property
    def counted(self) -> bool:
        return self.outcome not in ("REMOVED", "SKIPPED")

    @property
    def open(self) -> bool:
        """Whether its wave waits for it."""
        return self.state != "ENDED" and not self.removed


@dataclass(frozen=True)
class Ended:
    """An execution has ended."""

    device: str
    execution: str
    state: str
    signature: Signature
    acted: bool
    at: int


@dataclass(frozen=True)
class Moved:
    """A phone joined or left."""

    device: str
    joined: bool


class Budget:
    """Retries and starts of all rollouts."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.retries: list[int] = []

    def allows(self, now: int) -> bool:
        def in_last_hour(at: int) -> bool:
            return now // MINUTE - at // MINUTE < 60

        begun = sum(map(in_last_hour, self.begun))
        retries = sum(map(in_last_hour, self.retries))
        return retries < 10 or retries * 10 < begun


class Oracle:
    """One rollout. ``opens`` says when the window is open."""

    def __init__(
        self,
        spec: RolloutSpec,
        phones: list[Phone],
        *,
        rollout_id: str,
        repeatable: bool,
        last_wave: int,
        now: int,
        new_id: Callable[[], str],
        opens: Callable[[int], bool],
    ) -> None:
        self.spec = spec
        self.phones = phones
        self.rollout_id = rollout_id
        self.repeatable = repeatable
        self.last_wave = last_wave
        self.new_id = new_id
        self.opens = opens
        self.state = "RUNNING"
        self.code = ""
        self.wave = 0
        self.version = 1
        self.moved_at = now
        self.last_result_at: int | None = None
        self.starts_at: list[int] = []
        self.breakers: set[Signature] = set()
        self.accepted: dict[int, dict[str, int]] = {}
        self.now = now
        self.ending = False
        # Of the last call: device and try of each start; execution, fence and unless-begun of each withdrawal.
        self.started: list[tuple[str, int]] = []
        self.withdrawn: list[tuple[str, bool, bool]] = []

    # What can be asked of it.

    def decide(
        self, changes: list[Ended | Moved], *, now: int, offline: Container[str], budget: Budget, limit: int
    ) -> None:
        self.now, self.started, self.withdrawn = now, [], []
        for change in changes:
            self.take(change, budget)
        left = limit
        while True:
            while self.rule():
                pass
            if left == 0 or not self.begin_one(offline, budget):
                return
            left -= 1

    def command(self, control: str, changes: list[Ended | Moved], *, version: int, now: int) -> str:
        """The code of its refusal; empty: it was done."""
        refusal = self.refusal(control, version)
        if refusal:
            return refusal
        self.now, self.started, self.withdrawn = now, [], []
        if control == "PAUSE":
            self.move("PAUSED", "PAUSED_BY_OPERATOR")
        elif control in ("RESUME", "PROMOTE"):
            self.accept_failures()
            following = self.next_wave() if control == "PROMOTE" else None
            if following is not None:
                self.wave = following
            self.move("RUNNING")
            self.moved_at = now
        else:
            self.ending = True
            for change in changes:
                self.take(change, Budget())
            self.end_all(
                "CANCELLED_BY_OPERATOR" if control == "CANCEL" else "ABORTED_BY_OPERATOR", fence=control == "ABORT"
            )
            while self.rule():
                pass
        return ""

    def refusal(self, control: str, version: int) -> str:  # noqa: PLR0911  # one for each refusal
        if version != self.version:
            return "STALE_VERSION"
        if self.state in ENDS:
            return "ROLLOUT_ENDED"
        if self.state == "CANCELLING" and control != "ABORT":
            return "ROLLOUT_CANCELLING"
        if control == "PAUSE" and self.state != "RUNNING":
            return "ROLLOUT_NOT_RUNNING"
        if control == "RESUME":
            if self.state != "PAUSED":
                return "ROLLOUT_NOT_PAUSED"
            if self.code in GATE_PAUSES and self.why_not_further() == self.code:
                return "ROLLOUT_BELOW_GATE"
        if control == "PROMOTE":
            by_gate = self.state == "PAUSED" and self.code in GATE_PAUSES
            if self.state != "AWAITING_APPROVAL" and not by_gate and not self.soaking():
                return "ROLLOUT_PAUSED" if self.state == "PAUSED" else "ROLLOUT_NOT_PROMOTABLE"
        return ""

    # What is known.

    def of(self, wave: int) -> list[Phone]:
        return [phone for phone in self.phones if phone.wave == wave]

    def complete(self, wave: int) -> bool:
        return not any(phone.open for phone in self.of(wave))

    def everything_open_complete(self) -> bool:
        return all(self.complete(wave) for wave in range(self.wave + 1))

    def next_wave(self) -> int | None:
        return min(
            (phone.wave for phone in self.phones if phone.wave > self.wave and phone.state == "WAITING"), default=None
        )

    def live(self) -> int:
        return sum(phone.state == "STARTED" for phone in self.phones)

    def gate(self, wave: int) -> Gate:
        return self.spec.waves[wave - 1].gate

    def failures(self, wave: int, code: str) -> int:
        return sum(phone.failed and code in ("*", phone.code) for phone in self.of(wave))

    def too_many(self, wave: int) -> bool:
        gate, accepted = self.gate(wave), self.accepted.get(wave, {})
        failed = self.failures(wave, "*")
        members = sum(phone.counted for phone in self.of(wave))
        limit = gate.max_failures
        if limit is not None and failed > accepted.get("*", 0):
            over = failed > limit.value if isinstance(limit, Count) else failed * 10_000 > limit.hundredths * members
            if over:
                return True
        return any(
            self.failures(wave, code) > most and self.failures(wave, code) > accepted.get(code, 0)
            for code, most in gate.max_failures_by_code.items()
        )

    def accept_failures(self) -> None:
        for wave in range(1, self.wave + 1):
            if self.too_many(wave):
                codes = ("*", *self.gate(wave).max_failures_by_code)
                self.accepted[wave] = {code: self.failures(wave, code) for code in codes}

    def why_not_further(self) -> str:
        """Why the open wave, when it is complete, does not pass."""
        if not self.complete(self.wave):
            return ""
        phones = self.of(self.wave)
        if self.wave == 0:
            return "DRY_RUN_FAILED" if any(phone.outcome != "SUCCEEDED" for phone in phones) else ""
        gate = self.gate(self.wave)
        results = sum(phone.state == "ENDED" and phone.counted for phone in phones)
        if results == 0 or results < min(gate.min_sample, sum(not phone.removed for phone in phones)):
            return "SAMPLE_TOO_SMALL"
        succeeded = sum(phone.outcome == "SUCCEEDED" for phone in phones)
        members = sum(phone.counted for phone in phones)
        return "BELOW_THRESHOLD" if succeeded * 10_000 < gate.min_success_percent.hundredths * members else ""

    def soaks_until(self) -> int | None:
        """When the open wave, complete and passed, has soaked; None: nothing soaks."""
        if self.state != "RUNNING" or self.wave == 0 or not self.complete(self.wave) or self.next_wave() is None:
            return None
        if self.why_not_further() or self.last_result_at is None:
            return None
        return self.last_result_at + us(self.gate(self.wave).soak)

    def soaking(self) -> bool:
        until = self.soaks_until()
        return until is not None and until > self.now

    def rate(self) -> int | None:
        rate = self.spec.rate_per_minute
        if rate is None:
            return None
        if isinstance(rate, int):
            rate = Rate(base=rate)
        successes = sum(phone.wave > 0 and phone.outcome == "SUCCEEDED" for phone in self.phones)
        return min(rate.limit, int(rate.base * Fraction(str(rate.factor)) ** (successes // rate.raise_after)))

    # What happens.

    def move(self, state: str, code: str = "") -> None:
        self.state, self.code = state, code
        self.version += 1
        for phone in self.phones:
            if state in ("SUCCEEDED", "FAILED") and phone.state == "STARTED" and phone.removed:
                phone.state = "ENDED"

    def settled(self, phone: Phone) -> None:
        """A phone has changed: failures that are none any more are not accepted any more."""
        accepted = self.accepted.get(phone.wave, {})
        for code in accepted:
            accepted[code] = min(accepted[code], self.failures(phone.wave, code))

    def end(self, phone: Phone, outcome: str, at: int) -> None:
        phone.state, phone.outcome, phone.retry_at = "ENDED", outcome, None
        if phone.counted and phone.wave > 0:
            self.last_result_at = max(at, self.last_result_at or at)

    def end_all(self, code: str, *, fence: bool) -> None:
        self.move("ABORTED" if fence else "CANCELLING", code)
        for phone in self.phones:
            if phone.state == "STARTED":
                if phone.removed and code == "MEMBERS_GONE":
                    continue
                self.withdrawn.append((phone.execution, fence, False))
                if not fence:
                    continue
            if phone.state != "ENDED":
                self.end(phone, "REMOVED" if phone.removed else "CANCELLED", self.now)

    def take(self, change: Ended | Moved, budget: Budget) -> None:
        if isinstance(change, Ended):
            self.take_end(change, budget)
        elif change.joined:
            self.take_joiner(change.device)
        else:
            self.take_leaver(change.device)

    def take_joiner(self, device: str) -> None:
        if self.ending or self.state in ENDS | {"CANCELLING"}:
            return
        wave = self.wave or self.last_wave
        for phone in self.phones:
            if phone.device == device and phone.place > 0:
                if phone.removed and phone.tries == 0:
                    phone.wave, phone.state, phone.outcome = wave, "WAITING", ""
                return
        self.phones.append(Phone(device, max(phone.place for phone in self.phones) + 1, wave))

    def take_leaver(self, device: str) -> None:
        for phone in self.phones:
            if phone.device == device and phone.place > 0 and phone.open:
                phone.outcome = "REMOVED"
                if phone.state == "STARTED":
                    self.withdrawn.append((phone.execution, False, True))
                else:
                    phone.state, phone.retry_at = "ENDED", None

    def take_end(self, change: Ended, budget: Budget) -> None:
        for phone in self.phones:
            if phone.execution == change.execution != "":
                break
        else:
            return
        correction = phone.state != "STARTED"
        if correction and (phone.outcome != "SILENT" or change.state == "LOST"):
            return
        self.moved_at = self.now
        if phone.removed:
            phone.state = "ENDED"
            return
        code = change.signature[0]
        outcome = {"LOST": "SILENT"}.get(change.state, change.state)
        if change.state == "FAILED" and code == "OUTCOME_UNKNOWN":
            outcome = "UNKNOWN"
        if change.state == "EXPIRED" and self.spec.offline == "SKIP" and phone.tries == 1 and phone.wave > 0:
            outcome = "SKIPPED"
        if outcome in FAILURES:
            phone.signature = change.signature
        elif correction:
            phone.signature = None
        alike = sum(other.wave > 0 and other.signature == change.signature for other in self.phones)
        over = self.ending or self.state in ENDS | {"CANCELLING"}
        again = outcome in FAILURES and not over and self.may_again(change)
        if again and self.spec.retry.max_attempts > 1 and phone.wave > 0 and alike >= self.spec.retry.breaker:
            self.breakers.add(change.signature)
        if (
            again
            and phone.tries < self.spec.retry.max_attempts
            and change.signature not in self.breakers
            and budget.allows(self.now)
        ):
            budget.retries.append(self.now)
            phone.state, phone.outcome = "RETRYING", outcome
            phone.retry_at = change.at + self.delay(phone)
        else:
            self.end(phone, outcome, change.at)
        self.settled(phone)
        for other in self.phones:
            if other.wave > 0 and other.state == "RETRYING" and other.signature in self.breakers:
                self.end(other, other.outcome, self.now)

    def may_again(self, change: Ended) -> bool:
        """Whether a failure of this kind may be tried again at all."""
        code = change.signature[0]
        if change.state not in ("FAILED", "TIMED_OUT", "LOST") or code in NEVER_AGAIN:
            return False
        if self.spec.retry.only_codes and code not in self.spec.retry.only_codes:
            return False
        return self.repeatable or not (change.acted or code == "OUTCOME_UNKNOWN" or change.state == "LOST")

    def delay(self, phone: Phone) -> int:
        retry = self.spec.retry
        wait = int(us(retry.delay) * Fraction(str(retry.backoff)) ** (phone.tries - 1))
        digest = hashlib.sha256(f"{self.rollout_id}\n{phone.device}\n{phone.tries}".encode()).hexdigest()
        return wait + wait * retry.jitter.hundredths * int(digest[:8], 16) // (10_000 * 2**32)

    def rule(self) -> bool:
        """The first rule that applies. Whether one did."""
        if self.state in ENDS:
            return False
        if self.state == "CANCELLING":
            if self.live() == 0:
                self.move("CANCELLED", self.code)
                return True
            return False
        if all(phone.removed for phone in self.phones if phone.wave > 0):
            self.end_all("MEMBERS_GONE", fence=False)
            return True
        return self.rule_of_failures() or (
            self.state == "RUNNING" and (self.rule_of_waves() or self.rule_of_progress())
        )

    def rule_of_failures(self) -> bool:
        for wave in range(1, self.wave + 1):
            if not self.too_many(wave):
                continue
            if self.gate(wave).on_exceeded == "CANCEL":
                self.end_all("TOO_MANY_FAILURES", fence=False)
                return True
            if self.state == "RUNNING" and self.next_wave() is None and self.everything_open_complete():
                self.move("FAILED", "TOO_MANY_FAILURES")
                return True
            if self.state != "PAUSED" or self.code not in GATE_PAUSES | {"TOO_MANY_FAILURES"}:
                self.move("PAUSED", "TOO_MANY_FAILURES")
                return True
        return False

    def rule_of_waves(self) -> bool:
        following = self.next_wave()
        if not self.complete(self.wave) or (following is None and not self.everything_open_complete()):
            return False
        why = self.why_not_further()
        if why:
            self.move("FAILED" if following is None else "PAUSED", why)
            return True
        if following is None:
            self.move("SUCCEEDED")
            return True
        if self.soaking():
            return False
        approval = self.spec.approval if self.wave == 0 else self.gate(self.wave).approval
        if approval == "MANUAL":
            self.move("AWAITING_APPROVAL", "APPROVAL_NEEDED" if self.wave == 0 else "WAVE_APPROVAL_NEEDED")
            return True
        self.wave = following
        self.moved_at = self.now
        self.move("RUNNING")
        return True

    def rule_of_progress(self) -> bool:
        waits = any(phone.state == "STARTED" and not phone.removed for phone in self.phones)
        if waits and self.now >= self.moved_at + us(self.spec.deadlines.progress):
            self.move("PAUSED", "NO_PROGRESS")
            return True
        return False

    def begin_one(self, offline: Container[str], budget: Budget) -> bool:  # noqa: PLR0911  # one for each limit
        """Begins the next phone, or ends it for being offline. Whether there was one."""
        most, rate = self.spec.max_concurrent, self.rate()
        if self.state != "RUNNING" or not self.opens(self.now):
            return False
        if most is not None and self.live() >= most:
            return False
        if rate is not None and sum(-(-at // SECOND) * SECOND + MINUTE > self.now for at in self.starts_at) >= rate:
            return False
        by_place = sorted(self.phones, key=lambda phone: phone.place)
        due = [phone for phone in by_place if phone.state == "RETRYING" and (phone.retry_at or 0) <= self.now]
        fresh = [phone for phone in by_place if phone.state == "WAITING" and phone.wave <= self.wave]
        if not due and not fresh:
            return False
        phone = (due or fresh)[0]
        if not due and phone.wave > 0 and phone.device in offline:
            if self.spec.offline == "SKIP":
                self.end(phone, "SKIPPED", self.now)
                return True
            if self.spec.offline == "FAIL":
                phone.signature = ("OFFLINE", "", "")
                self.end(phone, "EXPIRED", self.now)
                return True
            if self.spec.offline == "SUBSTITUTE":
                later = [
                    other
                    for other in sorted(self.phones, key=lambda other: (other.wave, other.place))
                    if other.state == "WAITING" and other.wave > self.wave and other.device not in offline
                ]
                if later:
                    other = later[0]
                    phone.wave, phone.place, other.wave, other.place = other.wave, other.place, phone.wave, phone.place
                    phone = other
        if not any(other.state == "STARTED" and not other.removed for other in self.phones):
            self.moved_at = self.now
        phone.state, phone.outcome, phone.retry_at = "STARTED", "", None
        phone.tries += 1
        phone.execution = self.new_id()
        self.starts_at.append(self.now)
        budget.begun.append(self.now)
        self.started.append((phone.device, phone.tries))
        return True
