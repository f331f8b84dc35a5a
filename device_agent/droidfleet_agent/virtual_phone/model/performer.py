"""Does what a scenario says: runs lists of actions and keeps timers. Every chain of actions is bounded."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import assert_never

from pydantic import JsonValue

from droidfleet_agent.virtual_phone.effects import EffectLog
from droidfleet_agent.virtual_phone.model.assign import add_to, append_to, assign, move_in, remove_from
from droidfleet_agent.virtual_phone.model.pages import Pages
from droidfleet_agent.virtual_phone.model.state import PageState, PhoneState
from droidfleet_agent.virtual_phone.scenario import actions as act
from droidfleet_agent.virtual_phone.scenario.conditions import holds
from droidfleet_agent.virtual_phone.scenario.models import Page
from droidfleet_agent.virtual_phone.scenario.template import Scope, lookup
from droidfleet_shared.clock import Clock

MAX_CHAIN = 500
"""Actions that one touch or timer may cause, through screens that open screens; more is a loop in the scenario."""
MAX_NESTED = 20
"""Lists of actions that may cause one another (an opened screen's `on_open` that opens a screen, and so on)."""
MAX_TIMERS = 200
"""Timers waiting on one phone; further ones are dropped."""
TOAST_S = 3.5
"""How long a long toast stays on the display (Android's LENGTH_LONG)."""


class Performer:
    """Changes one phone's state as its scenario's actions ask."""

    def __init__(self, state: PhoneState, pages: Pages, effects: EffectLog, clock: Clock) -> None:
        self._state = state
        self._pages = pages
        pages.on_opened = self._opened
        self._effects = effects
        self._clock = clock
        self._timers: list[tuple[float, int, PageState, act.Actions, Scope, float | None]] = []
        self._order = itertools.count()
        self._budget = MAX_CHAIN
        self._depth = 0

    # -- actions -------------------------------------------------------------------------------------------------

    def run(self, actions: Sequence[act.Action], scope: Scope, page: PageState) -> None:
        """Runs the actions in order. ``scope`` is that of the widget or page that they belong to."""
        if self._depth == 0:
            self._budget = MAX_CHAIN
        if self._depth >= MAX_NESTED:
            return
        self._depth += 1
        try:
            for action in actions:
                self._budget -= 1
                if self._budget < 0:
                    return
                self._perform(action, scope, page)
        finally:
            self._depth -= 1

    def _perform(self, action: act.Action, scope: Scope, page: PageState) -> None:
        match action:
            case act.Go() | act.Back() | act.OpenDialog() | act.CloseDialog() | act.OpenApp() | act.HideKeyboard():
                self._move(action, scope, page)
            case act.Toast():
                self.toast(action.toast.text(scope))
            case act.Set() | act.Add() | act.Append() | act.Toggle() | act.Remove() | act.Move():
                self._change(action, scope)
            case act.Effect():
                details = {name: value.resolve(scope) for name, value in action.details.items()}
                self._effects.record(action.effect, origin="app", package=page.app.app.package, details=details)
            case act.After():
                self._later(page, action.after_ms / 1000, action.do, scope, None)
            case act.If():
                self.run(action.then if holds(action.if_, scope) else action.else_, scope, page)
            case act.FocusField():
                self._focus_named(page, action.focus)
            case _:
                assert_never(action)

    def _move(
        self,
        action: act.Go | act.Back | act.OpenDialog | act.CloseDialog | act.OpenApp | act.HideKeyboard,
        scope: Scope,
        page: PageState,
    ) -> None:
        pages = self._pages
        match action:
            case act.Go():
                pages.open_screen(page.app, action.go, replace=action.replace, clear=action.clear)
            case act.Back():
                pages.close_page()
            case act.OpenDialog():
                pages.open_dialog(page.app, action.dialog)
            case act.CloseDialog():
                pages.close_dialog()
            case act.OpenApp():
                pages.start_app(action.open_app.text(scope))
            case act.HideKeyboard():
                pages.hide_keyboard()

    def _change(
        self, action: act.Set | act.Add | act.Append | act.Toggle | act.Remove | act.Move, scope: Scope
    ) -> None:
        match action:
            case act.Set():
                for path, value in action.set.items():
                    assign(scope, path, value.resolve(scope))
            case act.Add():
                for path, value in action.add.items():
                    add_to(scope, path, value.resolve(scope))
            case act.Append():
                for path, value in action.append.items():
                    append_to(scope, path, value.resolve(scope))
            case act.Toggle():
                assign(scope, action.toggle, not lookup(scope, tuple(action.toggle.split("."))))
            case act.Remove():
                remove_from(scope, action.remove, action.at.resolve(scope))
            case act.Move():
                move_in(scope, action.move, action.at.resolve(scope), action.to.resolve(scope))
        self._state.touched()

    def toast(self, text: str) -> None:
        """Shows a toast; it stays the last one until it is cleared."""
        self._state.toast = text
        self._state.toast_until = self._clock.monotonic() + TOAST_S
        self._effects.record("toast", origin="app", package=self._state.front, details={"text": text})

    def _focus_named(self, page: PageState, name: str) -> None:
        key = find_widget(page.definition, name, f"{page.serial}:{page.name}")
        if key is not None:
            page.focus = key
            self._pages.show_keyboard()

    def _opened(self, page: PageState) -> None:
        scope = self._state.scope(page)
        for timer in page.definition.timers:
            every = None if timer.every_ms is None else timer.every_ms / 1000
            self._later(page, timer.after_ms / 1000, timer.do, scope, every)
        self.run(page.definition.on_open, scope, page)

    # -- timers --------------------------------------------------------------------------------------------------

    def _later(self, page: PageState, after_s: float, do: act.Actions, scope: Scope, every_s: float | None) -> None:
        if len(self._timers) < MAX_TIMERS:
            due = self._clock.monotonic() + after_s
            heapq.heappush(self._timers, (due, next(self._order), page, do, scope, every_s))

    def run_timers(self) -> None:
        """Runs what is due. A repeating timer that is late runs once, not once for each turn it missed."""
        now = self._clock.monotonic()
        while self._timers and self._timers[0][0] <= now:
            _, _, page, do, scope, every_s = heapq.heappop(self._timers)
            if not page.open:
                continue
            self.run(do, scope, page)
            if every_s is not None:
                self._later(page, every_s, do, scope, every_s)


def find_widget(definition: Page, name: str, key: str) -> str | None:
    """The node key of a widget that a page names; None inside rows made from data."""
    stack: list[tuple[object, str]] = [(definition.root, key)]
    while stack:
        widget, at = stack.pop()
        if getattr(widget, "name", None) == name:
            return at
        stack.extend((child, f"{at}/{index}") for index, child in enumerate(getattr(widget, "children", ())))
    return None


def with_value(scope: Scope, value: JsonValue) -> Scope:
    """The scope of a change handler: ``value`` is the new state."""
    return ({"value": value}, *scope)
