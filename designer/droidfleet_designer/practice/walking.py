"""Walks the wishes of a description on the screens that were shown: what was done so far, and which call is next.

It is made anew for each answer, from the conversation alone. What cannot be found or done ends the walk: what comes
after it may stand on another screen. Nothing that may not be undone is done; it is only written down.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_designer.loop.telling import template
from droidfleet_designer.practice import finding, steps
from droidfleet_designer.practice.finding import Finder, Found, Nothing, Several
from droidfleet_designer.practice.past import LANGUAGES, Made, Purpose
from droidfleet_designer.practice.reading import Line, Shown
from droidfleet_designer.practice.steps import Step, Steps
from droidfleet_designer.practice.wishes import (
    Back,
    Check,
    Clause,
    LongPress,
    Name,
    Open,
    Pause,
    Read,
    ScrollTo,
    Search,
    Tap,
    Turn,
    Type,
)

MAX_CALLS = 16
"""For one wish: a list that is longer than so many pages is searched in its app."""

MAX_SCROLLS = {True: 3, False: 8}
"""Calls, by whether the name is quoted: then one call scrolls until it is seen, else one page."""

MAX_CLOSED = 3
"""Things in the way of one wish."""

MAX_TRIES = 2
"""Of the act itself."""

SCROLLS_A_CALL = 20
"""The most that the tool takes."""

MAX_SEARCHED = 200
"""Characters that the tools look for."""

WAIT_S, LONG_WAIT_S = 3.0, 25.0
"""For what is not there yet; for what the person says is waited for."""

_UNTOUCHED = ("Nothing was done", "Not carried out", "没有执行", "什么也没有做")
"""So the tools and the loop begin to say it."""

MAX_ANSWER = 120
"""Characters of a tool's answer in a note."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call to make. ``what``: it is about, for the sentence that goes with it."""

    tool: str
    arguments: Mapping[str, JsonValue]
    purpose: Purpose
    what: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A note for the person: a code of `prompts/practice.*.md` and its values."""

    code: str
    values: Mapping[str, object]


class Walk:
    """The walk so far. ``steps`` is the task as it grows; ``at`` the wish it is at; ``over``: it ended before the last
    wish, and ``notes`` say why."""

    def __init__(self, clauses: Sequence[Clause], *, language: str) -> None:
        named = bool(clauses) and isinstance(clauses[0].wish, Open)
        front = () if named else (Clause("", Open(Name(""))),)
        self.clauses: tuple[Clause, ...] = (*front, *clauses)
        self.steps = Steps(language)
        self.notes: list[Note] = []
        self.at = 0
        self.over = False
        self._untried = False
        self._screen: Shown | None = None
        self._begin()

    def _begin(self) -> None:
        """Forgets what belonged to the wish before."""
        self._tries: Counter[Purpose] = Counter()
        self._stuck = False
        self._turned = False
        self._launcher = ""

    @property
    def clause(self) -> Clause:
        """The one it is at."""
        return self.clauses[self.at]

    @property
    def going(self) -> bool:
        """Whether a wish is left that can be walked to."""
        return not self.over and self.at < len(self.clauses)

    # What was done ----------------------------------------------------------------------------------------------------

    def take(self, made: Made) -> None:
        """Takes what came of a call. Calls for wishes further on mean that those between needed none."""
        while self.going and self.at < made.wish:
            if self._wish() is not None:
                # Its screen is told in one line by now. It was found then, or no call for a later wish had been made.
                self._assume()
        if not self.going or self.at != made.wish:
            return
        before = self._screen
        # An answer without a screen: the one before may be gone, and its numbers do not count.
        self._screen = made.shown
        self._tries[made.purpose] += 1
        line = before.line(made.element) if before is not None and made.element is not None else None
        match made.purpose:
            case Purpose.CLEAR if made.done and line is not None:
                self.steps.close(line)
                self._note("CLOSED", what=_called(line))
            case Purpose.REVEAL if made.done and line is not None:
                self.steps.pend("tap", {"action": "CLICK", "selector": line.selector}, self.clause.said)
            case Purpose.LAUNCH if made.done and before is not None:
                self._launcher = before.package
            case Purpose.SCROLL:
                still = before is not None and made.shown is not None and before.alike(made.shown)
                self._stuck = not made.done or still
                self.steps.scrolled = self.steps.scrolled or made.done
            case Purpose.OPEN | Purpose.ACT:
                self._acted(made, line, before)
            case _:
                pass

    def _acted(self, made: Made, line: Line | None, before: Shown | None) -> None:
        if not made.done:
            if made.purpose is Purpose.ACT and _not_allowed(made.answer):
                self._leave_untried(line, before)
            elif self._tries[made.purpose] >= MAX_TRIES or not _may_be_repeated(made):
                self._end("FAILED", answer=made.answer.partition("\n")[0][:MAX_ANSWER])
            return
        if isinstance(self.clause.wish, Turn):
            self._turned = True  # the screen says whether it is as wished
            return
        if isinstance(self.clause.wish, Open) and made.purpose is Purpose.OPEN:
            package = str(made.arguments["package"])
            self.steps.drop_pending()  # what led there through the launcher
            if not self.clause.wish.name.text:
                self._note("FRONT_APP", what=package)
            self._commit("open", {"action": "OPEN", "packageName": package, "stopFirst": True})
            return
        selector = self._selector(line, before)
        self._commit(*steps.acting(self.clause.wish, line, selector))
        self._judge(line, selector)

    def _assume(self) -> None:
        """Takes the present wish as one that needed nothing but a screen, which is told no more."""
        name = getattr(self.clause.wish, "name", None)
        if isinstance(self.clause.wish, Check) and name is not None:
            self._commit(*steps.seeing(self.clause.wish, {"textContains": steps.literal(name.text)}))
        else:
            self._end("TOO_LONG")

    # What is next -----------------------------------------------------------------------------------------------------

    def next(self) -> Call | None:
        """The next call; None: the walk is at its end."""
        while self.going:
            if (call := self._wish()) is not None:
                return call
        return None

    def hurry(self) -> None:
        """Ends it: there is no time for more."""
        if self.going:
            self._end("HURRY")

    def _wish(self) -> Call | None:
        """The call that the present wish needs; None: the walk went on without one."""
        wish = self.clause.wish
        if self._untried:
            return self._end("AFTER_UNTRIED")
        if self._tries.total() >= MAX_CALLS:
            return self._end("TOO_LONG")
        if isinstance(wish, Pause):
            length = wish.milliseconds
            return self._commit("pause", {"action": "DELAY", "minMs": length, "maxMs": length})
        if isinstance(wish, Back):
            return Call("back", {}, Purpose.ACT, self.clause.said)
        if self._screen is None:
            return Call("screen", {}, Purpose.LOOK)
        return self._on_screen(self._screen)

    def _on_screen(self, screen: Shown) -> Call | None:  # noqa: PLR0911 - one for each wish
        match self.clause.wish:
            case Open(name=name, app=app) if self.at == 0 or app or steps.is_package(name.text):
                return self._open(name, screen)
            case Open(name=name) | Tap(name=name):
                return self._touch("tap", name, screen, {})
            case LongPress(name=name):
                return self._touch("long_press", name, screen, {})
            case Turn(name=name, on=on):
                return self._turn(name, on, screen)
            case Type(text=text, field=name):
                return self._type(name, {"text": text, "clear": True}, screen)
            case Search(text=text):
                return self._search(text, screen)
            case ScrollTo(name=name) | Check(name=name):
                return self._see(name, screen)
            case Read(name=name):
                return self._read(name, screen)
            case _:
                raise AssertionError("the others need no screen")

    def _open(self, name: Name, screen: Shown) -> Call | None:
        found = finding.thing(name, screen)
        package = self._package(name, screen)
        if package:
            return Call("open_app", {"package": package, "afresh": True}, Purpose.OPEN, package)
        if self._launcher and self._tries[Purpose.WAIT] < MAX_TRIES:
            return Call("wait", {"seconds": WAIT_S}, Purpose.WAIT, name.text)
        if not self._tries[Purpose.HOME]:
            return Call("press_key", {"key": "HOME"}, Purpose.HOME, name.text)
        if isinstance(found, Found) and not found.line.danger and not self._launcher:
            return self._on("tap", found.line, Purpose.LAUNCH, name.text)
        further = self._further(name, screen) if isinstance(found, Nothing) else None
        return further or self._end("APP_NOT_FOUND", what=name.text)

    def _package(self, name: Name, screen: Shown) -> str:
        """The package of the app that is meant, as far as it is known; empty: it is not."""
        if not name.text or (self._launcher and screen.package != self._launcher):
            return screen.package
        return name.text if steps.is_package(name.text) else ""

    def _touch(self, tool: str, name: Name, screen: Shown, more: Mapping[str, JsonValue]) -> Call | None:
        line = self._located(lambda seen: finding.thing(name, seen), name, screen)
        if not isinstance(line, Line):
            return line
        if line.danger:
            return self._leave_untried(line, screen)
        return self._on(tool, line, Purpose.ACT, self.clause.said, more)

    def _turn(self, name: Name, on: bool, screen: Shown) -> Call | None:
        line = self._located(lambda seen: finding.switch(name, seen), name, screen)
        if not isinstance(line, Line):
            return line
        if ("checked" in line.states) is on:
            self._commit("turn", steps.turning(line, on=on))
            return self._judge(line, line.selector or {})
        if self._turned:
            return self._end("FAILED", answer="it did not turn")
        if line.danger:
            self._note("NOT_TRIED")
            self._untried = True
            return self._commit("turn", steps.turning(line, on=on))
        return self._on("tap", line, Purpose.ACT, self.clause.said)

    def _type(self, name: Name | None, typed: Mapping[str, JsonValue], screen: Shown) -> Call | None:
        line = self._located(lambda seen: finding.field(name, seen), name, screen)
        if not isinstance(line, Line):
            return line
        if "password" in line.states:
            self.clauses = (*self.clauses[: self.at], self.clause.hidden(), *self.clauses[self.at + 1 :])
            step, declared = steps.secret(line, self.steps.inputs)
            self.steps.inputs |= {declared: {"type": "secret"}}
            self._note("PASSWORD", input=declared)
            self._untried = True
            return self._commit("type", step)
        return self._on("type_text", line, Purpose.ACT, self.clause.said, typed)

    def _search(self, text: str, screen: Shown) -> Call | None:
        found = finding.search_field(screen)
        if isinstance(found, Nothing) and not self._tries[Purpose.REVEAL]:
            button = finding.search_button(screen)
            if isinstance(button, Found):
                return self._on("tap", button.line, Purpose.REVEAL)
        line = self._located(finding.search_field, None, screen)
        if not isinstance(line, Line):
            return line
        typed: Mapping[str, JsonValue] = {"text": text, "clear": True, "submit": True}
        return self._on("type_text", line, Purpose.ACT, self.clause.said, typed)

    def _see(self, name: Name, screen: Shown) -> Call | None:
        found = finding.word(name, screen)
        wish = self.clause.wish
        if found is None:
            return self._further(name, screen) or self._missing(name, Nothing(()))
        selector = steps.saying(found[1], name)
        if isinstance(wish, ScrollTo):
            self.steps.scrolled = False
            return self._commit("scroll", steps.scrolling(selector))
        assert isinstance(wish, Check)
        return self._commit(*steps.seeing(wish, selector))

    def _read(self, name: Name, screen: Shown) -> Call | None:
        line = self._located(lambda seen: finding.readable(name, seen), name, screen)
        if not isinstance(line, Line):
            return line
        selector = steps.reading(line, name)
        if selector is None:
            return self._end("NOT_FOUND", similar="")
        return self._commit("read", self.steps.extraction(selector, name))

    # Finding ----------------------------------------------------------------------------------------------------------

    def _located(self, finder: Finder, name: Name | None, screen: Shown) -> Line | Call | None:
        """The line that is meant; else the call by which it may come into sight; None: the walk ended."""
        found = finder(screen)
        match found:
            case Found(line=line):
                return line
            case Several(lines=lines):
                return self._end("SEVERAL", count=len(lines))
            case Nothing():
                return self._further(name, screen) or self._missing(name, found)

    def _further(self, name: Name | None, screen: Shown) -> Call | None:
        """The call by which something that is not on the screen may come into sight; None: there is none left."""
        what = f'"{name.text}"' if name is not None else ""
        scrolls = any(line.scrolls for line in screen.lines)
        blocking = finding.closing(screen)
        if blocking is not None and self._tries[Purpose.CLEAR] < MAX_CLOSED and (self._stuck or not scrolls):
            return self._on("tap", blocking, Purpose.CLEAR, _called(blocking))
        if name is None:
            return None
        if scrolls and not self._stuck and self._tries[Purpose.SCROLL] < MAX_SCROLLS[name.quoted]:
            arguments: dict[str, JsonValue] = {"direction": "DOWN"}
            if name.quoted:
                arguments |= {"until_text": name.text[:MAX_SEARCHED], "max_scrolls": SCROLLS_A_CALL}
            return Call("scroll", arguments, Purpose.SCROLL, what)
        if not self._tries[Purpose.WAIT]:
            waiting = isinstance(self.clause.wish, Check) and self.clause.wish.waiting
            seconds = LONG_WAIT_S if waiting else WAIT_S
            return Call("wait", {"seconds": seconds, "text": name.text[:MAX_SEARCHED]}, Purpose.WAIT, what)
        return None

    def _missing(self, name: Name | None, nothing: Nothing) -> Call | None:
        similar = nothing.similar
        if name is not None and not similar and self._screen is not None:
            similar = finding.similar(name, self._screen)
        return self._end("NOT_FOUND", similar=", ".join(f'"{each}"' for each in similar))

    # Keeping ----------------------------------------------------------------------------------------------------------

    def _on(
        self, tool: str, line: Line, purpose: Purpose, what: str = "", more: Mapping[str, JsonValue] | None = None
    ) -> Call:
        assert self._screen is not None, "lines are found on one"
        return Call(tool, {"screen": self._screen.number, "element": line.number, **(more or {})}, purpose, what)

    def _commit(self, verb: str, step: Step) -> Call | None:
        """The wish is done: its step goes into the task, with those that led to it. No call."""
        clause = self.clause
        if self.steps.commit(verb, step, clause):
            self._note("ONCE")
        self.at += 1
        self._begin()
        return None

    def _selector(self, line: Line | None, screen: Shown | None) -> Step:
        """By what the present wish's step names a line."""
        name = getattr(self.clause.wish, "name", None)
        return steps.selector_of(line, name, screen) if line is not None and screen is not None else {}

    def _judge(self, line: Line | None, selector: Step) -> Call | None:
        """Notes where the last wish's step may name something else next time."""
        if line is not None and steps.may_change(line, selector):
            self.notes.append(Note("UNSTABLE", {"what": self.clauses[self.at - 1].said}))
        return None

    def _leave_untried(self, line: Line | None, screen: Shown | None) -> Call | None:
        if line is None:
            return self._end("TOO_LONG")
        self._note("NOT_TRIED")
        self._untried = True
        return self._commit(*steps.acting(self.clause.wish, line, self._selector(line, screen)))

    def _note(self, code: str, **values: object) -> None:
        self.notes.append(Note(code, {"what": self.clause.said, **values}))

    def _end(self, code: str, **values: object) -> Call | None:
        self._note(code, **values)
        self.steps.drop_pending()
        self.over = True
        return None


def _may_be_repeated(made: Made) -> bool:
    """Whether a call left the phone as it was, for certain; to open an app afresh is the same twice."""
    untouched = made.answer.startswith(_UNTOUCHED) or re.match(r"\w+: TARGET_", made.answer) is not None
    return untouched or made.purpose is Purpose.OPEN


def _not_allowed(answer: str) -> bool:
    return any(answer.startswith(template("NOT_ALLOWED", each).partition("{why}")[0]) for each in LANGUAGES)


def _called(line: Line) -> str:
    return line.words[0].text if line.words else ""
