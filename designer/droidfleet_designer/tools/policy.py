"""The rules around the tools: which calls reach the phone. A refusal is an outcome, and nothing was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from droidfleet_designer.observation.observe import Element, Observation
from droidfleet_designer.tools import catalogue
from droidfleet_designer.tools.arguments import (
    Acting,
    Arguments,
    Back,
    MaybeOnElement,
    OnElement,
    OpenApp,
    StopApp,
    TapPoint,
    Wait,
)
from droidfleet_designer.tools.guard import why_withheld
from droidfleet_designer.tools.seeing import Seeing
from droidfleet_designer.tools.steps import Step, step_of
from droidfleet_designer.tools.telling import outcome_seen
from droidfleet_designer.tools.tool import Outcome, OutcomeKind
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.screen.snapshot import Snapshot

MAX_CALLS = 40
"""Of one tool in one exploration: more is going in circles."""

_TOUCHES_NOTHING = OpenApp | StopApp | Back | Wait
"""What does the same whatever is on the screen: it is not looked at before."""


class RefusedError(Exception):
    """The call ends here; ``outcome`` tells why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.code)
        self.outcome = outcome


class Policy:
    """The rules of one exploration. ``calls``: how often each tool was called already; ``max_calls``: how often it may
    be, altogether."""

    def __init__(
        self, *, seeing: Seeing, words: EffectWords, allow_points: bool, calls: Mapping[str, int], max_calls: int
    ) -> None:
        self._seeing = seeing
        self._words = words
        self._offered = catalogue.offered(allow_points=allow_points)
        self._calls = Counter(calls)
        self._max_calls = max_calls
        self._asked: tuple[Acting, str] | None = None

    def admit(self, name: str, *, again: bool) -> type[Arguments]:
        """Counts a call; what its arguments are. ``again``: it was counted when it was withheld.

        Raises:
            RefusedError: ``UNKNOWN_TOOL``, ``TOOL_QUOTA``.
        """
        if name not in self._offered:
            raise _refused("UNKNOWN_TOOL", f"There is no such tool. There are: {', '.join(self._offered)}.")
        if not again:
            if self._calls[name] >= self._max_calls:
                most = self._max_calls
                text = f"{name} was called {most} times, which is all. Go on without it, or submit what you have."
                raise _refused("TOOL_QUOTA", text, kind=OutcomeKind.FAILED)
            self._calls[name] += 1
        return self._offered[name]

    async def step(self, call: Acting, *, approved: bool) -> Step:
        """The step that may be run for a call, judged by what the phone shows now.

        A model takes seconds to decide and a person minutes to allow, and the phone does not stand still meanwhile.

        Raises:
            RefusedError: ``STALE_ELEMENT``, ``NO_SUCH_ELEMENT``, ``NO_SELECTOR``, ``SCREEN_CHANGED``,
                ``NEEDS_APPROVAL``.
            DroidfleetError: the phone could not be looked at.
        """
        element = self._meant(call)
        step = step_of(call, element)
        if isinstance(call, _TOUCHES_NOTHING):
            return step
        now, snapshot = await self._seeing.peek()
        there = next((each for each in now.elements.values() if _alike(each, element)), None)
        if element is not None and there is None:
            raise self._changed(now, snapshot)
        why = why_withheld(call, step, element=there, seen=now, snapshot=snapshot, words=self._words)
        if not why:
            return step
        if not approved:
            self._asked = (call, why)
            text = f"Withheld, nothing was done: {why}. Only a person may allow it."
            raise RefusedError(Outcome(OutcomeKind.NEEDS_APPROVAL, text, code="NEEDS_APPROVAL", why=why))
        if self._asked != (call, why):
            raise self._changed(now, snapshot)
        return step

    def _meant(self, call: Acting) -> Element | None:
        """The element that the call names; None: it names none."""
        match call:
            case OnElement(screen=screen, element=number) | MaybeOnElement(screen=int(screen), element=number):
                seen = self._counting(screen)
            case TapPoint():
                self._counting(call.screen)
                return None
            case _:
                return None
        element = seen.elements.get(number or 0)
        if element is None:
            raise _refused("NO_SUCH_ELEMENT", f"Nothing was done: screen {screen} lists no element {number}.")
        if element.selector is None:
            text = f"Nothing was done: no selector names element {number}, so no task could use it. Take another way."
            raise _refused("NO_SELECTOR", text)
        return element

    def _counting(self, screen: int) -> Observation:
        newest = self._seeing.newest
        if newest is None or newest.number != screen:
            which = "there is none" if newest is None else f"the newest is screen {newest.number}"
            text = f"Nothing was done: the numbers of screen {screen} count no more ({which}). Look with `screen`."
            raise _refused("STALE_ELEMENT", text)
        return newest

    def _changed(self, now: Observation, snapshot: Snapshot) -> RefusedError:
        text = "Nothing was done: the screen is not any more what it was. It shows now:"
        self._seeing.keep(now, snapshot)
        return RefusedError(outcome_seen(OutcomeKind.RETRY, text, now, snapshot, code="SCREEN_CHANGED"))


def _refused(code: str, text: str, *, kind: OutcomeKind = OutcomeKind.RETRY) -> RefusedError:
    return RefusedError(Outcome(kind, text, code=code))


def _alike(one: Element, other: Element | None) -> bool:
    """Whether the two, of different looks, are the same thing to a person and to a step."""
    return other is not None and (one.selector, one.kind, one.words, one.danger) == (
        other.selector,
        other.kind,
        other.words,
        other.danger,
    )
