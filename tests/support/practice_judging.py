"""Judges a practice run by what happened on the phone, and its draft by the matcher, not by what they say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_designer.draft.draft import Brief, Draft, DraftSettings
from droidfleet_designer.log import Ended
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Ambiguous, Matched
from droidfleet_shared.screen.snapshot import Snapshot
from support.in_process_phone import InProcessPhone
from support.practice_cases import TAINTED, Case, Effect, case, effects_of
from support.practice_runs import DEVICE, PracticeRun, executed

PASSWORD = {"password": "Sunflower-7"}

_GAPS = ("not in the task", "Not understood", "不在任务里")
"""What notes say of what is missing."""

_ONE = ("selector", "option", "to")
_SOME = ("until", "unlessVisible", "requireVisible", "visible", "gone")


@dataclass(frozen=True, slots=True)
class Judged:
    """A run. ``gaps``: what its draft says is missing; ``unproved``: selectors of it that no screen of the exploration
    answers to; ``succeeded``: its task, run once; ``wrong``: all that must not be, each in words that name the seed."""

    drafted: bool
    gaps: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()
    succeeded: bool = False
    wrong: tuple[str, ...] = ()


async def judged(seed: int) -> Judged:
    """Explores the case of a seed, and runs its draft's task once on a phone of its own."""
    given = case(seed)
    run = PracticeRun(given.scenario)
    settings = DraftSettings(language=given.language)
    ended = await run.explore(Brief(description=given.description, device=DEVICE, settings=settings))
    wrong = list(_while_exploring(run.phone, given))
    draft = run.draft
    if draft is None:
        wrong += [] if _honest_end(ended, given) else [f"ended as {ended.code}: {ended.message}"]
        return Judged(drafted=False, wrong=_named(seed, given, wrong))
    gaps = tuple(note for note in draft.notes if any(words in note for words in _GAPS))
    result, phone = await executed(draft, given.scenario, inputs=PASSWORD if "inputs" in draft.task else None)
    succeeded = result.code is StepCode.OK
    if not succeeded:
        wrong.append(f"its task fails: {result.code} {result.message}")
    wrong += _effects(given, phone, complete=not gaps)
    if not gaps:
        wrong += _claimed(given, draft, list(result.outputs.values()))
    elif given.possible:
        wrong.append(f"leaves out what can be done: {gaps}")
    wrong += _plan(given, draft)
    return Judged(True, gaps, tuple(_unproved(draft, run.log.snapshots)), succeeded, _named(seed, given, wrong))


def summary(runs: Sequence[Judged]) -> str:
    """The runs in one line."""
    count = Counter[str]()
    for run in runs:
        count["drafts"] += run.drafted
        count["with gaps that they tell"] += bool(run.gaps)
        count["succeeded when run"] += run.succeeded
        count["selectors without evidence"] += len(run.unproved)
        count["wrong"] += bool(run.wrong)
    return f"{len(runs)} practice runs: " + ", ".join(f"{number} {what}" for what, number in count.items())


def _while_exploring(phone: InProcessPhone, given: Case) -> Iterator[str]:
    allowed = {kind for deed in given.deeds if deed.tried for kind, _ in deed.effects}
    for effect in phone.happened:
        if effect.kind not in allowed:
            yield f"did {effect.kind} while exploring"


def _honest_end(ended: Ended, given: Case) -> bool:
    """Whether it gave up by saying so, and where more than opening the app could not be done."""
    nothing_else = any(deed.possible is not True for deed in given.deeds[1:2])
    return ended.code == "MODEL_REFUSED" and nothing_else


def _effects(given: Case, phone: InProcessPhone, *, complete: bool) -> Iterator[str]:
    happened: list[Effect] = [(effect.kind, dict(effect.details)) for effect in phone.happened]  # type: ignore[arg-type]  # JSON by its contract
    wanted = effects_of(given.deeds)
    if any(kind == TAINTED for kind, _ in happened) or happened != (wanted if complete else wanted[: len(happened)]):
        yield f"its task does {happened}, wanted was {wanted}"


def _claimed(given: Case, draft: Draft, outputs: Sequence[object]) -> Iterator[str]:
    """What is wrong with a draft that says it has all."""
    if given.possible is False:
        yield "says nothing of what cannot be done"
    read = [deed.output for deed in given.deeds if deed.output is not None]
    if read != outputs:
        yield f"reads {outputs}, wanted was {read}"
    untried = sum(not deed.tried for deed in given.deeds)
    if untried > len(draft.marks):
        yield f"marks {len(draft.marks)} steps that may not be undone, and there are {untried}"


def _plan(given: Case, draft: Draft) -> Iterator[str]:
    if draft.schedule.cron != given.schedule:
        yield f"is scheduled {draft.schedule}, wanted was {given.schedule}"
    if draft.target.all is not given.everyone:
        yield f"is meant for {draft.target}"


def _named(seed: int, given: Case, wrong: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"case {seed}, {given.description!r}: {each}" for each in wrong)


def _unproved(draft: Draft, snapshots: Mapping[str, Snapshot]) -> Iterator[str]:
    """Selectors that name nothing on any screen that was seen, or never one thing alone."""
    matchers = [each.matcher() for name, each in snapshots.items() if name != "s0"]
    for selector, one in _selectors(draft.task):
        read = Selector.model_validate_json(json.dumps(selector).replace("$${", "${"))
        outcomes = [matcher.match(read, touch=False) for matcher in matchers]
        wanted = (Matched,) if one else (Matched, Ambiguous)
        if not any(isinstance(outcome, wanted) for outcome in outcomes):
            yield f"{selector}"


def _selectors(value: JsonValue) -> Iterator[tuple[JsonValue, bool]]:
    """Each selector, and whether it must name one thing."""
    if isinstance(value, list):
        for each in value:
            yield from _selectors(each)
    if isinstance(value, dict):
        for key, each in value.items():
            if key in _ONE or key in _SOME:
                yield each, key in _ONE
            elif isinstance(each, dict | list):
                yield from _selectors(each)
