"""What a virtual phone saw: every effect that reached it from outside, and what its apps made of them.

The log is what proves "one effect": tests and the demo compare a task's result with it. The text of a password field
never enters it, only its length.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, TextIO

from droidfleet_shared.clock import Clock

DEFAULT_CAPACITY = 10_000
"""Effects kept in memory. A scripted run makes some hundreds; this bounds a phone left alone for days."""

Origin = Literal["outside", "app"]


@dataclass(frozen=True, slots=True)
class Target:
    """The node that an effect hit. ``bounds`` is left, top, right, bottom in display pixels."""

    text: str
    description: str
    resource_id: str
    class_name: str
    bounds: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that happened to the phone.

    ``origin`` is ``outside`` for what came in (kinds ``tap``, ``long_press``, ``swipe``, ``drag``, ``set_text``,
    ``type_text``, ``key``, ``start_app``, ``stop_app``, ``clear_app``, ``orientation``, ``wake``, ``sleep``, ...)
    and ``app`` for the business effects that a scenario declares (``order_placed``). ``package`` is the app that
    had the focus. ``details`` holds JSON values only. ``seq`` counts from 1 for each phone.
    """

    serial: str
    seq: int
    at: datetime
    origin: Origin
    kind: str
    package: str
    target: Target | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line of JSON, without the line break."""
        target = self.target
        return json.dumps(
            {
                "serial": self.serial,
                "seq": self.seq,
                "at": self.at.isoformat(),
                "origin": self.origin,
                "kind": self.kind,
                "package": self.package,
                "target": None
                if target is None
                else {
                    "text": target.text,
                    "description": target.description,
                    "resourceId": target.resource_id,
                    "className": target.class_name,
                    "bounds": list(target.bounds),
                },
                "details": dict(self.details),
            },
            ensure_ascii=False,
        )


class EffectLog:
    """The effects of one phone, in order. Bounded: the oldest are dropped and counted in ``dropped``.

    With ``path`` each effect is also appended to that file as one JSON line and flushed at once, so that a phone that
    is killed leaves what it saw. Several phones may share one file: a line is one write, and names its phone.
    """

    def __init__(
        self, clock: Clock, *, serial: str = "", path: Path | None = None, capacity: int = DEFAULT_CAPACITY
    ) -> None:
        self._clock = clock
        self._serial = serial
        self._effects: deque[Effect] = deque(maxlen=capacity)
        self._sequence = 0
        self._listeners: list[Callable[[Effect], None]] = []
        self._file: TextIO | None = path.open("a", encoding="utf-8") if path is not None else None
        self.dropped = 0

    def record(
        self,
        kind: str,
        *,
        package: str,
        origin: Origin = "outside",
        target: Target | None = None,
        details: Mapping[str, object] | None = None,
    ) -> Effect:
        """Appends one effect and returns it."""
        self._sequence += 1
        effect = Effect(
            serial=self._serial,
            seq=self._sequence,
            at=self._clock.now(),
            origin=origin,
            kind=kind,
            package=package,
            target=target,
            details=details or {},
        )
        if len(self._effects) == self._effects.maxlen:
            self.dropped += 1
        self._effects.append(effect)
        if self._file is not None:
            self._file.write(effect.to_json() + "\n")
            self._file.flush()
        for listener in self._listeners:
            listener(effect)
        return effect

    def subscribe(self, listener: Callable[[Effect], None]) -> None:
        """Calls ``listener`` with each further effect, in the thread that causes it."""
        self._listeners.append(listener)

    def all(self) -> tuple[Effect, ...]:
        """Every effect still kept, oldest first."""
        return tuple(self._effects)

    def of(self, *kinds: str) -> tuple[Effect, ...]:
        """The effects of these kinds, oldest first."""
        return tuple(effect for effect in self._effects if effect.kind in kinds)

    def close(self) -> None:
        """Closes the file. Safe to call twice; later effects stay in memory only."""
        if self._file is not None:
            self._file.close()
            self._file = None
