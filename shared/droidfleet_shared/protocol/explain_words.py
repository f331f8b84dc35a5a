"""Puts selectors, conditions and steps into words for people, in one language. Pure; texts are shown as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import assert_never

from droidfleet_shared.protocol.bounds import Bound
from droidfleet_shared.protocol.condition import COMPARISONS, Condition
from droidfleet_shared.protocol.explain_phrases import PHRASES, Language
from droidfleet_shared.protocol.selector import ImageSelector, PointSelector, Selector
from droidfleet_shared.protocol.steps import (
    AssertStep,
    BackStep,
    BranchStep,
    ClickStep,
    DelayStep,
    DragStep,
    ExtractStep,
    ExtractTextStep,
    Goto,
    GroupStep,
    IfStep,
    InputStep,
    KeyStep,
    LongClickStep,
    OpenStep,
    RepeatStep,
    ScreenshotStep,
    ScrollStep,
    SelectOptionStep,
    Step,
    StopAppStep,
    SwipeStep,
    WaitStep,
    WakeStep,
)
from droidfleet_shared.protocol.steps.reading import ExtractField
from droidfleet_shared.protocol.wording import MAX_SHOWN, cut, printable

_MS_IN = {"day": 86_400_000, "hour": 3_600_000, "minute": 60_000, "second": 1_000}
"""The units in which times are told, the longest first."""


class Words:
    """Speaks one language."""

    def __init__(self, language: Language) -> None:
        self._phrases = PHRASES[language]

    def phrase(self, key: str, /, **values: object) -> str:
        """A phrase of the language, filled in."""
        return self._phrases[key].format(**values)

    def joined(self, parts: list[str]) -> str:
        """The parts after one another, with commas."""
        return self.phrase("comma").join(parts)

    def time(self, milliseconds: int) -> str:
        """A time in its two largest units, never rounded down."""
        if milliseconds < 1_000:
            return self.phrase("millisecond", n=milliseconds)
        if milliseconds < _MS_IN["minute"]:
            return self.phrase("second", n=f"{-(-milliseconds // 100) / 10:g}")
        unit, smaller = next(pair for pair in pairwise(_MS_IN) if milliseconds >= _MS_IN[pair[0]])
        count, rest = divmod(-(-milliseconds // _MS_IN[smaller]), _MS_IN[unit] // _MS_IN[smaller])
        larger = self.phrase(unit, n=f"{count:,}")
        return f"{larger} {self.phrase(smaller, n=rest)}" if rest else larger

    def bound(self, bound: Bound) -> str:
        """``at most 5 s, 1 effect, hides the keyboard once``."""
        parts = [self.phrase("at most", time=self.time(bound.time_ms)), self._count("effect", bound.effects)]
        return self.joined(parts + ([self._count("hide", bound.keyboard_hides)] if bound.keyboard_hides else []))

    def runs(self, runs: int) -> str:
        """How often a step runs at most; empty for once."""
        return "" if runs == 1 else self.phrase("runs", often=self._often(runs)) if runs else self.phrase("never")

    def _count(self, what: str, number: int) -> str:
        key = {0: f"no {what}", 1: f"one {what}"}.get(number, f"{what}s")
        return self.phrase(key, n=f"{number:,}", often=self._often(number))

    def _often(self, number: int) -> str:
        return self.phrase({1: "once", 2: "twice"}.get(number, "times"), n=f"{number:,}")

    # Selectors and conditions -----------------------------------------------------------------------------------

    def selector(self, selector: Selector | None, *, otherwise: str = "any node") -> str:
        """``text "Add", right of (text "Price")``; ``otherwise`` is the phrase where there is none."""
        if selector is None:
            return self.phrase(otherwise)
        return self.joined(
            [self._field(name, value) for name, value in selector.given().items() if name != "allowPoint"]
        )

    def _field(self, name: str, value: object) -> str:
        match value:
            case bool():
                return self.phrase("is" if value else "is not", flag=name)
            case int():
                return self.phrase(name, value=value + 1)
            case Selector():
                return self.phrase(name, value=self.phrase("nested", text=self.selector(value)))
            case ImageSelector():
                return self.phrase(name, artifact=shown(value.artifact), threshold=value.threshold)
            case PointSelector():
                return self.phrase(name, x=value.x_percent, y=value.y_percent)
            case _:
                return self.phrase(name, value=shown(str(value)))

    def condition(self, condition: Condition) -> str:
        """``text "Done" is visible``."""
        semicolon = self.phrase("semicolon")
        for name in ("visible", "gone"):
            if isinstance(selector := getattr(condition, name), Selector):
                return self.phrase(name, value=self.selector(selector))
        for name in ("foreground", "activity"):
            if (value := getattr(condition, name)) is not None:
                return self.phrase(name, value=printable(value))
        for name in COMPARISONS:
            if (value := getattr(condition, name)) is not None:
                return self.phrase(name, output=condition.output, value=shown(value))
        for name in ("all", "any"):
            if inner := getattr(condition, name):
                return self.phrase(name, values=semicolon.join(self.condition(each) for each in inner))
        return self.phrase("not", value=self.condition(condition.not_)) if condition.not_ is not None else ""

    # Steps ------------------------------------------------------------------------------------------------------

    def action(self, step: Step) -> str:
        """What the step does, without what may stand beside every action."""
        return self.joined([*self._action(step)])

    def _action(self, step: Step) -> Iterator[str]:
        match step:
            case ClickStep() | LongClickStep() | InputStep() | SelectOptionStep():
                yield from self._touching(step)
            case ScrollStep() | SwipeStep() | DragStep():
                yield from self._moving(step)
            case OpenStep():
                yield self.phrase("OPEN stop" if step.stop_first else "OPEN", app=printable(step.package_name))
                if step.activity_name is not None:
                    yield self.phrase("launches", activity=printable(step.activity_name))
            case StopAppStep():
                yield self.phrase("STOP_APP", app=printable(step.package_name))
            case BackStep() | WakeStep():
                yield self.phrase(step.action)
            case KeyStep():
                yield self.phrase("KEY", key=step.key.value)
            case WaitStep() | DelayStep() | ExtractTextStep() | ExtractStep() | ScreenshotStep() | AssertStep():
                yield from self._reading(step)
            case GroupStep() | IfStep() | RepeatStep() | BranchStep():
                yield from self._flow(step)
            case _:
                assert_never(step)

    def _touching(self, step: ClickStep | LongClickStep | InputStep | SelectOptionStep) -> Iterator[str]:
        target = self.selector(step.selector)
        match step:
            case ClickStep():
                key = "CLICK" if step.times == 1 else "CLICK times"
                yield self.phrase(
                    key, target=target, often=self._often(step.times), interval=self.time(step.interval_ms)
                )
                if step.unless_visible is not None:
                    yield self.phrase("unless", value=self.selector(step.unless_visible))
            case LongClickStep():
                yield self.phrase("LONG_CLICK", target=target, time=self.time(step.duration_ms))
            case InputStep():
                yield self.phrase("INPUT" if step.clear else "INPUT append", target=target, value=shown(step.value))
                if step.submit:
                    yield self.phrase("submit")
            case SelectOptionStep():
                option = self.selector(step.option)
                yield self.phrase("SELECT_OPTION", target=target, option=option, often=self._often(step.max_scrolls))
            case _:
                assert_never(step)

    def _moving(self, step: ScrollStep | SwipeStep | DragStep) -> Iterator[str]:
        match step:
            case ScrollStep():
                area = self.selector(step.selector, otherwise="the largest that scrolls")
                words = {
                    "direction": self.phrase(step.direction),
                    "target": area,
                    "often": self._often(step.max_scrolls),
                }
                if step.until is None:
                    yield self.phrase("SCROLL", **words)
                else:
                    yield self.phrase("SCROLL until", until=self.selector(step.until), **words)
            case SwipeStep():
                yield self.phrase(
                    "SWIPE",
                    direction=self.phrase(step.direction),
                    percent=step.distance_percent,
                    target=self.selector(step.selector, otherwise="the display"),
                    time=self.time(step.duration_ms),
                )
            case DragStep():
                handle, time = self.selector(step.selector), self.time(step.duration_ms)
                if step.by_percent is not None:
                    by = step.by_percent
                    yield self.phrase("DRAG by", target=handle, x=by.x, y=by.y, time=time)
                else:
                    yield self.phrase("DRAG to", target=handle, to=self.selector(step.to), time=time)
                if step.require_visible is not None:
                    yield self.phrase("require", value=self.selector(step.require_visible))
            case _:
                assert_never(step)

    def _reading(
        self, step: WaitStep | DelayStep | ExtractTextStep | ExtractStep | ScreenshotStep | AssertStep
    ) -> Iterator[str]:
        match step:
            case WaitStep():
                if step.condition is not None:
                    yield self.phrase("WAIT condition", condition=self.condition(step.condition))
                else:
                    yield self.phrase("WAIT", target=self.selector(step.selector))
            case DelayStep():
                least, most = step.min_ms, step.min_ms if step.max_ms is None else step.max_ms
                key = "DELAY" if least == most else "DELAY random"
                yield self.phrase(key, time=self.time(most), least=self.time(least), most=self.time(most))
            case ExtractTextStep():
                yield self.phrase("EXTRACT_TEXT", target=self.selector(step.selector), output=step.output_field)
                if step.append:
                    yield self.phrase("append")
            case ExtractStep():
                fields = self.joined([self._extracted(each) for each in step.fields])
                key = "EXTRACT all" if step.all else "EXTRACT"
                yield self.phrase(key, target=self.selector(step.selector), fields=fields, n=step.max_items)
                if step.append:
                    yield self.phrase("append")
            case ScreenshotStep():
                yield self.phrase("SCREENSHOT", name=shown(step.name))
            case AssertStep():
                yield self.phrase("ASSERT", condition=self.condition(step.condition))
            case _:
                assert_never(step)

    def _extracted(self, field: ExtractField) -> str:
        words = {"attribute": field.attribute.value, "output": field.output_field}
        if field.selector is None:
            return self.phrase("field", **words)
        return self.phrase("field inside", target=self.phrase("nested", text=self.selector(field.selector)), **words)

    def _flow(self, step: GroupStep | IfStep | RepeatStep | BranchStep) -> Iterator[str]:
        match step:
            case GroupStep():
                yield self.phrase("GROUP")
            case IfStep():
                yield self.phrase("IF", condition=self.condition(step.condition))
            case RepeatStep():
                often = self._often(step.max_iterations)
                if step.max_duration_ms is None:
                    yield self.phrase("REPEAT", often=often)
                else:
                    yield self.phrase("REPEAT time", often=often, time=self.time(step.max_duration_ms))
                if step.until is not None:
                    yield self.phrase("until", condition=self.condition(step.until))
            case BranchStep():
                condition = self.condition(step.condition)
                yield self.phrase("BRANCH", goto=shown(step.goto), condition=condition)
            case _:
                assert_never(step)

    def notes(self, step: Step) -> Iterator[str]:
        """What may stand beside every action, a sentence each, in the order in which it happens."""
        if step.package_name is not None and not isinstance(step, OpenStep | StopAppStep):
            key = "front" if step.activity_name is None else "front activity"
            names = {"package": printable(step.package_name), "activity": printable(step.activity_name or "")}
            yield self.phrase(key, **names)
        if step.probability < 100:
            yield self.phrase("probability", n=step.probability)
        if step.when is not None:
            yield self.phrase("when", condition=self.condition(step.when))
        if step.after is not None:
            within, condition = self.time(step.after.timeout_ms), self.condition(step.after.condition)
            yield self.phrase("after", time=within, condition=condition)
        if step.redo:
            yield self.phrase("redo")
        if step.optional:
            yield self.phrase("optional")
        if isinstance(step.on_failure, Goto):
            yield self.phrase("goto", goto=shown(step.on_failure.goto))
        elif step.on_failure == "CONTINUE":
            yield self.phrase("continue")


def shown(text: str) -> str:
    """A text of the document in quotes, cut, and unable to disturb a terminal."""
    return printable(json.dumps(cut(text, limit=MAX_SHOWN), ensure_ascii=False))
