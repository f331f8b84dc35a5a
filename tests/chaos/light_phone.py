"""A memory phone whose effects stand in its log, and whose screen outlives the process that drives it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

from chaos.effects import EffectFile, read_effects
from chaos.posts import CONFIRM, CONFIRMED, DRAFT, NOTHING, PACKAGE, SEND, SENT, TYPED
from droidfleet_agent.driver.memory import Call, Done, MemoryPhone, Page
from droidfleet_shared.clock import Clock, Deadline
from support.screens import dump, field, node, window

MOST_S = 0.1
"""The way of an action to the phone, and of its answer back: what a kill can fall into."""

FIELD_AT, SEND_AT, CONFIRM_AT, LAST_AT = (
    (0, 0, 1080, 200),
    (0, 300, 1080, 500),
    (0, 600, 1080, 800),
    (0, 900, 1080, 1000),
)

PAGE = Page(
    dump(
        window(
            field(FIELD_AT, hint=DRAFT, package=PACKAGE),
            node(SEND, SEND_AT, clickable=True, package=PACKAGE),
            node(CONFIRM, CONFIRM_AT, clickable=True, package=PACKAGE),
            node(NOTHING, LAST_AT, package=PACKAGE),
            package=PACKAGE,
        )
    )
)


class LightPhone(MemoryPhone):
    """One page: a draft, a button that sends it, one that confirms it, and what was sent last."""

    def __init__(self, file: Path, device: str, *, clock: Clock, random: Random) -> None:
        super().__init__({"post": PAGE}, start="post", clock=clock, serial=device)
        self._random = random
        self._log = EffectFile(file, device)
        root = self.window
        assert root is not None
        self._field, _, _, self._last = root.children
        for effect in read_effects(file, device):
            # The phone as the last agent left it.
            if effect.kind == TYPED:
                self._field.text = effect.word
            elif effect.kind == SENT:
                self._last.text = f"= {effect.word}"

    async def _act(self, call: Call, effect: Callable[[], None], deadline: Deadline) -> bool:
        # Who is killed before this has announced what the phone never felt.
        await asyncio.sleep(self._random.random() * MOST_S)
        happened = await super()._act(call, lambda: self._do(effect), deadline)
        # Who is killed before this was not told what the phone has felt.
        await asyncio.sleep(self._random.random() * MOST_S)
        return happened

    def _do(self, effect: Callable[[], None]) -> None:
        effect()
        match self.done[-1]:
            case Done("set_focused_text", text=word):
                self._log.write(TYPED, word)
            case Done("tap", target=target) if target == SEND:
                self._log.write(SENT, self._field.text)
                self._last.text = f"= {self._field.text}"
            case Done("tap", target=target) if target == CONFIRM:
                self._log.write(CONFIRMED, self._field.text)
        # It lives for hours.
        self.done.clear()
        self.calls.clear()

    async def close(self) -> None:
        await super().close()
        self._log.close()
