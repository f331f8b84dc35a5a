"""Conditions (protocol section 6): pure evaluation on one look, and the waits that decide on them.

A look on which no window at all was in front shows nothing, so `visible` and `gone` are undecided on it, as is the
activity while it changes. A system window in front is something that was seen: `visible` is then false.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from droidfleet_agent.engine.ending import StepFailed
from droidfleet_agent.engine.messages import cut, seen_on
from droidfleet_agent.engine.sight import needs_of
from droidfleet_agent.engine.step import StepRun, Wants
from droidfleet_agent.engine.wait import Missing, full_activity, wait_until
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.condition import Condition
from droidfleet_shared.protocol.regexes import compile_pattern
from droidfleet_shared.protocol.result import OutputValue
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.screen.matching import Matcher

Outputs = Mapping[str, OutputValue]

MAX_SHOWN = 300


def evaluate(condition: Condition, matcher: Matcher | None, outputs: Outputs) -> bool | None:
    """Whether it holds; None when the look does not decide it. ``matcher`` may be None when `needs_look` is false."""
    if condition.all is not None:
        parts = [evaluate(part, matcher, outputs) for part in condition.all]
        return False if False in parts else None if None in parts else True
    if condition.any is not None:
        parts = [evaluate(part, matcher, outputs) for part in condition.any]
        return True if True in parts else None if None in parts else False
    if condition.not_ is not None:
        inner = evaluate(condition.not_, matcher, outputs)
        return None if inner is None else not inner
    if condition.output is not None:
        return _compares(condition, outputs.get(condition.output))
    assert matcher is not None  # every other kind needs a look
    return _on_look(condition, matcher)


def _on_look(condition: Condition, matcher: Matcher) -> bool | None:
    screen = matcher.screen
    if screen.root is None and not screen.package:
        return None
    if condition.visible is not None:
        return matcher.any_visible(condition.visible)
    if condition.gone is not None:
        return not matcher.any_visible(condition.gone)
    if condition.foreground is not None:
        return screen.package == condition.foreground
    if not screen.activity:
        # Just changing, unless a system window lies over every activity.
        return None if screen.root is not None else False
    return screen.activity == full_activity(condition.activity or "", screen.package)


def _compares(condition: Condition, value: OutputValue | None) -> bool:
    """An output that was not extracted yet is not equal to anything."""
    if value is None:
        return False
    values = [normalise(each) for each in ([value] if isinstance(value, str) else value) if each is not None]
    if condition.equals is not None:
        return isinstance(value, str) and values[0] == normalise(condition.equals)
    if condition.contains is not None:
        part = normalise(condition.contains)
        return part in values[0] if isinstance(value, str) else part in values
    pattern = compile_pattern(condition.matches or "")
    return any(pattern.fullmatch(each) for each in values)


def needs_look(condition: Condition) -> bool:
    """Whether anything in it is decided on a look; conditions of outputs alone are not."""
    parts = _parts(condition)
    return any(needs_look(part) for part in parts) if parts else condition.output is None


def needs_activity(condition: Condition) -> bool:
    """Whether a look for it has to tell the activity, which costs two more reads."""
    return condition.activity is not None or any(needs_activity(part) for part in _parts(condition))


def wants_of(condition: Condition) -> Wants:
    """What a look for the condition has to tell."""
    return Wants(activity=needs_activity(condition), sight=needs_of(condition))


def _parts(condition: Condition) -> tuple[Condition, ...]:
    inner = () if condition.not_ is None else (condition.not_,)
    return (*(condition.all or ()), *(condition.any or ()), *inner)


async def decide(run: StepRun, condition: Condition, *, what: str, in_front: bool = True) -> bool:
    """Whether it holds, decided on one look: the first that decides it. ``what`` names the condition for people.

    ``in_front``: the step's package and activity are waited for first.

    Raises:
        StepFailed: nothing decided it by the deadline.
        RunCancelled.
    """
    if not needs_look(condition) and not (in_front and run.step.package_name is not None):
        return bool(evaluate(condition, None, run.outputs))

    def decided(matcher: Matcher) -> bool | Missing:
        holds = evaluate(condition, matcher, run.outputs)
        if holds is not None:
            return holds
        return Missing(
            StepCode.CONDITION_NOT_MET,
            lambda: f"{what} could not be decided: no window was in front, or the activity was just changing.",
        )

    return await wait_until(run, decided, in_front=in_front)


async def wait_until_holds(
    run: StepRun,
    condition: Condition,
    *,
    code: StepCode,
    in_front: bool = True,
    watch: Callable[[Matcher], None] = lambda _matcher: None,
) -> None:
    """Looks until it holds. ``watch`` is shown every look.

    Raises:
        StepFailed: with ``code`` at the deadline; at once when only outputs could change that.
        RunCancelled.
    """

    def held(matcher: Matcher) -> bool | Missing:
        watch(matcher)
        if evaluate(condition, matcher, run.outputs):
            return True
        return Missing(code, lambda: _lacking(condition, matcher, run.outputs))

    if needs_look(condition) or (in_front and run.step.package_name is not None):
        await wait_until(run, held, in_front=in_front)
    elif not evaluate(condition, None, run.outputs):
        raise StepFailed(code, f"{_lacking(condition, None, run.outputs)} Waiting changes no output.")


def _lacking(condition: Condition, matcher: Matcher | None, outputs: Outputs) -> str:
    """What did not hold, and what there is instead."""
    unmet = _unmet(condition, matcher, outputs)
    said = [f"{condition_text(condition)} did not hold."]
    if unmet != [condition]:
        said.append(f"Of it not: {', '.join(condition_text(part) for part in unmet)}.")
    for name in dict.fromkeys(part.output for part in unmet if part.output is not None):
        value = json.dumps(outputs[name], ensure_ascii=False) if name in outputs else "not extracted yet"
        said.append(f"Output {name!r} is {cut(value, MAX_SHOWN)}.")
    if matcher is not None and any(needs_look(part) for part in unmet):
        wanted = next((part.visible for part in unmet if part.visible is not None), None)
        said.append(seen_on(matcher.screen, wanted))
    return " ".join(said)


def _unmet(condition: Condition, matcher: Matcher | None, outputs: Outputs) -> list[Condition]:
    """The condition, or of an `all` the parts that do not hold."""
    if condition.all:
        return [unmet for part in condition.all for unmet in _unmet(part, matcher, outputs)]
    return [] if evaluate(condition, matcher, outputs) else [condition]


def condition_text(condition: Condition) -> str:
    """The condition as the author wrote it, as JSON on one line, cut."""
    written = condition.model_dump(mode="json", by_alias=True, exclude_none=True)
    return cut(json.dumps(written, ensure_ascii=False), MAX_SHOWN)
