"""A workshop on a scripted phone, for tests of the designer's tools."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from pydantic import JsonValue

from droidfleet_designer.tools.tool import Outcome, OutcomeKind
from droidfleet_designer.tools.workshop import Workshop
from droidfleet_shared.clock import Clock, VirtualClock
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.screen.snapshot import Snapshot
from support.designer_phones import DEVICE, LAUNCHER, ScriptedPhones, page
from support.screens import field, node

WORDS = EffectWords(["send", "delete", "pay"])

HOME = page(node("Shop", (0, 100, 200, 300), clickable=True), package=LAUNCHER)
SHOP = page(
    node("Green tea", (0, 100, 1080, 200), clickable=True),
    field((0, 300, 1080, 400), hint="Search the shop", focused=True),
    node("Delete account", (0, 500, 1080, 600), clickable=True),
    node("", (0, 700, 1080, 800), clickable=True),
    node("", (0, 700, 1080, 800), clickable=True),
)
TEA = page(node("Green tea, 100 g", (0, 100, 1080, 200)), node("Back to all", (0, 300, 1080, 400), clickable=True))
CHAT = page(
    node("See you at eight", (0, 100, 1080, 200)),
    field((0, 2000, 800, 2100), hint="Message", focused=True),
    node("", (800, 2000, 1080, 2100), clickable=True, description="Send"),
    package="com.example.chat",
)
QUESTION = page(
    node("Delete three photos?", (0, 1000, 1080, 1100)),
    node("Cancel", (0, 1200, 500, 1300), clickable=True),
    node("OK", (500, 1200, 1080, 1300), clickable=True),
)

PAGES = {"home": HOME, "shop": SHOP, "tea": TEA, "chat": CHAT, "question": QUESTION}
MOVES = {("shop", "CLICK Green tea"): "tea", ("tea", "BACK"): "shop", ("home", "CLICK Shop"): "shop"}
APPS = {"com.example.shop": "shop", "com.example.chat": "chat"}


class Bench:
    """A workshop, its phone, and the drafts that were submitted."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        start: str = "shop",
        allow_points: bool = False,
        snapshots: Mapping[str, Snapshot] | None = None,
        calls: Mapping[str, int] | None = None,
        pause_s: float = 0.0,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.phones = ScriptedPhones(PAGES, clock=self.clock, moves=MOVES, apps=APPS)
        self.phones.now = start
        self.snapshots = dict(snapshots or {})
        self.submitted: list[Mapping[str, JsonValue]] = []
        self._ids = itertools.count(1)
        self.workshop = Workshop(
            phones=self.phones,
            device=DEVICE,
            holder="the designer",
            clock=self.clock,
            words=WORDS,
            allow_points=allow_points,
            snapshots=self.snapshots,
            new_id=self.new_id,
            submit=self._submit,
            calls=calls,
            pause_s=pause_s,
        )

    def new_id(self) -> str:
        return f"request-{next(self._ids)}"

    async def call(self, name: str, **arguments: JsonValue) -> Outcome:
        return await self.workshop.call(name, arguments, request_id=self.new_id())

    async def call_allowed(self, name: str, **arguments: JsonValue) -> Outcome:
        """The call again, after a person allowed it."""
        return await self.workshop.call(name, arguments, request_id=self.new_id(), approved=True)

    async def number(self, words: str) -> dict[str, JsonValue]:
        """Looks, and says by which arguments a call names the line in which these words stand."""
        seen = await self.call("screen")
        [line] = [line for line in seen.text.splitlines()[2:] if words in line]
        return {"screen": int(seen.snapshot_id[1:]), "element": int(line.split()[0])}

    async def _submit(self, proposal: Mapping[str, JsonValue]) -> Outcome:
        self.submitted.append(proposal)
        return Outcome(OutcomeKind.RESULT, "accepted", ends=True)
