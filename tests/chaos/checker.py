"""The reckoning: what was accepted, what was felt, what is reported. Pure.

Three sources that know nothing of each other must agree: the answers of the API to its callers, the phones' own logs of
effects, and the controller's lists. What they do not agree on is a `Finding`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from chaos.effects import Felt

LEEWAY = timedelta(seconds=0.5)
"""Between the moment of a kill as its doer notes it and what the killed one wrote last."""

SUCCEEDED, FAILED, LOST = "SUCCEEDED", "FAILED", "LOST"
NEVER_ACTS = frozenset({"EXPIRED", "REJECTED"})
"""Ends that say that the phone was not touched."""

TERMINAL = NEVER_ACTS | {SUCCEEDED, FAILED, LOST, "CANCELLED", "TIMED_OUT"}

DOUBT = frozenset({"OUTCOME_UNKNOWN", "AGENT_RESTARTED"})
"""Codes that a killed agent explains, and nothing else in this load does."""

OUT_OF_TIME = "DEVICE_UNAVAILABLE"
"""The code of a step whose time was over before the phone was asked, or had answered. These phones answer at once."""

STEP_TIME = timedelta(seconds=4)
"""A pause as long as this can take what is left of the five seconds of a step."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call was told: the run, and the execution of each device. A rollout's answer names none."""

    run_id: str
    executions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request and everything that it was answered; ``word`` is its request id and what its executions post."""

    word: str
    devices: tuple[str, ...]
    answers: tuple[Answer, ...]
    rollout: bool = False


@dataclass(frozen=True, slots=True)
class Reported:
    """An execution as the controller has it. ``counted``: its ends in the event log that count; ``acted``: whether its
    result says that the phone was told anything; ``began_at`` and ``ended_at``: as its agent reported."""

    execution_id: str
    run_id: str
    device: str
    state: str
    code: str = ""
    acted: bool | None = None
    counted: int = 0
    began_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """What a rollout reports at its end."""

    run_id: str
    ended: bool
    members: int
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Kill:
    """The process of an agent was killed; ``devices``: whose agents it held."""

    part: str
    devices: frozenset[str]
    at: datetime


@dataclass(frozen=True, slots=True)
class Pause:
    """The process of an agent was stopped from ``at`` to ``until``; ``devices``: whose agents it held."""

    part: str
    devices: frozenset[str]
    at: datetime
    until: datetime


class Sin(StrEnum):
    """What can be wrong."""

    LOST = "lost"
    """Accepted, and not there, not ended, or said to be done and not felt."""
    TWICE = "executed twice"
    """An effect was felt more than once."""
    COUNTED_TWICE = "counted twice"
    """One request has two executions, one execution two ends, or a rollout's counts do not add up."""
    DENIED = "felt and denied"
    """The phone felt what the controller says was never done."""
    UNASKED = "unasked"
    """An effect or an execution that nobody asked for."""
    UNEXPLAINED = "failed without a cause"
    """It failed, or nobody knows, and neither a kill nor a pause explains it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be. ``execution_id`` may be empty."""

    sin: Sin
    word: str
    device: str
    execution_id: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """An execution that failed, and the kill or the pause that explains it."""

    execution_id: str
    word: str
    device: str
    code: str
    felt: tuple[str, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that is compared. ``expected``: the effects of an execution that succeeds, by device."""

    asked: Sequence[Asked]
    felt: Sequence[Felt]
    reported: Sequence[Reported]
    counts: Sequence[Counts] = ()
    kills: Sequence[Kill] = ()
    pauses: Sequence[Pause] = ()
    expected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``executions``: accepted ones; ``states``: of the reported ones; ``repeated``: answers beyond the first."""

    findings: tuple[Finding, ...]
    doubts: tuple[Doubt, ...]
    executions: int
    effects: int
    states: Mapping[str, int]
    repeated: int

    def count(self, sin: Sin) -> int:
        """How many findings are of this kind."""
        return sum(finding.sin is sin for finding in self.findings)


def check(evidence: Evidence) -> Verdict:
    """The reckoning."""
    return _Reckoning(evidence).verdict()


class _Reckoning:
    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._word_of_run = {answer.run_id: asked.word for asked in evidence.asked for answer in asked.answers}
        self._asked = {asked.word: asked for asked in evidence.asked}
        self._felt: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for effect in evidence.felt:
            self._felt[effect.word, effect.device][effect.kind] += 1
        self._reported = {each.execution_id: each for each in evidence.reported}
        self._of: dict[tuple[str, str], list[Reported]] = defaultdict(list)
        for each in evidence.reported:
            self._of[self._word_of_run.get(each.run_id, ""), each.device].append(each)
        self._doubts: list[Doubt] = []

    def verdict(self) -> Verdict:
        findings = (
            *self._answers(),
            *self._units(),
            *self._executions(),
            *self._effects(),
            *self._rollouts(),
        )
        accepted = [asked for asked in self._evidence.asked if asked.answers]
        return Verdict(
            findings=findings,
            doubts=tuple(self._doubts),
            executions=sum(len(asked.devices) for asked in accepted),
            effects=len(self._evidence.felt),
            states=Counter(each.state for each in self._evidence.reported),
            repeated=sum(len(asked.answers) - 1 for asked in accepted),
        )

    def _answers(self) -> Iterator[Finding]:
        """The same request is answered with the same executions, one for each device."""
        for asked in self._evidence.asked:
            for answer in asked.answers[1:]:
                if answer != asked.answers[0]:
                    yield Finding(
                        Sin.COUNTED_TWICE,
                        asked.word,
                        "",
                        "",
                        f"was answered with {asked.answers[0].run_id} and again with {answer.run_id}",
                    )
            if asked.answers and not asked.rollout and set(asked.answers[0].executions) != set(asked.devices):
                yield Finding(Sin.LOST, asked.word, "", "", "was answered for other devices than it named")

    def _units(self) -> Iterator[Finding]:
        """What was accepted is there, once for each device."""
        for asked in self._evidence.asked:
            if not asked.answers:
                continue
            answer = asked.answers[0]
            for device in asked.devices:
                there = self._of[asked.word, device]
                promised = answer.executions.get(device, "")
                if not there or (promised and promised not in self._reported):
                    yield Finding(
                        Sin.LOST, asked.word, device, promised, "was accepted, and the controller has no execution"
                    )
                # A rollout may try again, but never what may have acted; that is seen by the effects.
                if len(there) > 1 and not asked.rollout:
                    ids = ", ".join(each.execution_id for each in there)
                    yield Finding(
                        Sin.COUNTED_TWICE, asked.word, device, there[0].execution_id, f"has {len(there)}: {ids}"
                    )

    def _executions(self) -> Iterator[Finding]:
        """Each execution came to an end that is true."""
        for each in self._evidence.reported:
            word = self._word_of_run.get(each.run_id, "")
            felt = self._felt.get((word, each.device), Counter[str]())

            def finding(sin: Sin, sentence: str, each: Reported = each, word: str = word) -> Finding:
                return Finding(sin, word, each.device, each.execution_id, sentence)

            if not word:
                if not any(not asked.answers for asked in self._evidence.asked):
                    yield finding(Sin.UNASKED, f"belongs to the run {each.run_id}, which nobody was told of")
                continue
            if each.state not in TERMINAL:
                yield finding(Sin.LOST, f"is {each.state} still")
                continue
            if each.state == LOST:
                yield finding(Sin.LOST, "is reported as lost")
                continue
            if each.counted > 1:
                yield finding(Sin.COUNTED_TWICE, f"ended {each.counted} times")
            if each.state == SUCCEEDED:
                missing = [kind for kind in self._evidence.expected[each.device] if not felt[kind]]
                if missing:
                    yield finding(Sin.LOST, f"is reported as done, and {', '.join(missing)} was not felt")
                continue
            alone = len(self._of[word, each.device]) == 1
            if felt and alone and (each.state in NEVER_ACTS or each.acted is False):
                yield finding(Sin.DENIED, f"is {each.state} {each.code}, and {', '.join(felt)} was felt")
            yield from self._explain(each, word, tuple(felt))

    def _explain(self, each: Reported, word: str, felt: tuple[str, ...]) -> Iterator[Finding]:
        cause = self._cause(each) if each.state == FAILED else ""
        if not cause:
            sentence = f"is {each.state} {each.code}, and no kill or pause explains it"
            yield Finding(Sin.UNEXPLAINED, word, each.device, each.execution_id, sentence)
            return
        self._doubts.append(Doubt(each.execution_id, word, each.device, each.code, felt, cause))

    def _cause(self, each: Reported) -> str:
        """What befell its agent between its beginning and its end: a kill for what nobody knows, a pause that took a
        step's time for what ran out of it."""
        if each.began_at is None or each.ended_at is None:
            return ""
        begun, over = each.began_at - LEEWAY, each.ended_at + LEEWAY
        for kill in self._evidence.kills if each.code in DOUBT else ():
            if each.device in kill.devices and begun <= kill.at <= over:
                return f"{kill.part} was killed at {kill.at:%H:%M:%S.%f}"[:-3]
        for pause in self._evidence.pauses if each.code == OUT_OF_TIME else ():
            lasted = pause.until - pause.at
            if each.device in pause.devices and lasted >= STEP_TIME and begun <= pause.at and pause.until <= over:
                return f"{pause.part} was stopped for {lasted.total_seconds():.1f} s at {pause.at:%H:%M:%S}"
        return ""

    def _effects(self) -> Iterator[Finding]:
        """No effect is felt twice, none without a request."""
        for (word, device), kinds in self._felt.items():
            there = self._of.get((word, device), [])
            execution_id = there[0].execution_id if there else ""
            asked = self._asked.get(word)
            if asked is None or device not in asked.devices:
                yield Finding(Sin.UNASKED, word, device, execution_id, f"{', '.join(kinds)} was felt")
            twice = {kind: count for kind, count in kinds.items() if count > 1}
            if twice:
                told = ", ".join(f"{kind} {count} times" for kind, count in twice.items())
                yield Finding(Sin.TWICE, word, device, execution_id, f"{told} was felt")

    def _rollouts(self) -> Iterator[Finding]:
        """A rollout counts each of its phones once, as their executions ended."""
        counts = {each.run_id: each for each in self._evidence.counts}
        for asked in self._evidence.asked:
            if not (asked.rollout and asked.answers):
                continue
            run_id = asked.answers[0].run_id
            told = counts.get(run_id)
            if told is None or not told.ended:
                sentence = "is unknown" if told is None else "has not ended"
                yield Finding(Sin.LOST, asked.word, "", "", f"rollout {run_id} {sentence}")
                continue
            runs = [each for device in asked.devices for each in self._of[asked.word, device]]
            if any(each.state not in TERMINAL for each in runs):
                continue  # found already; what has not ended may have ended when it was counted
            counted = sum(told.outcomes.values())
            done = sum(
                any(each.state == SUCCEEDED for each in self._of[asked.word, device]) for device in asked.devices
            )
            if not counted == told.members == len(asked.devices):
                sentence = f"counts {counted} ends of {told.members} members, and {len(asked.devices)} were asked for"
            elif told.outcomes.get(SUCCEEDED, 0) != done:
                sentence = f"counts {told.outcomes.get(SUCCEEDED, 0)} successes, and {done} phones had one"
            else:
                continue
            yield Finding(Sin.COUNTED_TWICE, asked.word, "", "", f"rollout {run_id} {sentence}")
