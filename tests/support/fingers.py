"""A phone in memory that remembers where its fingers moved."""

from __future__ import annotations

from droidfleet_agent.driver.memory import MemoryPhone
from droidfleet_shared.clock import Deadline

Point = tuple[int, int]


class Fingers(MemoryPhone):
    """``moved`` holds the way of each swipe and drag that the phone was asked for, whatever became of it; ``times`` how
    long the finger was to move and then to rest, in ms."""

    moved: list[tuple[Point, Point]]
    times: list[tuple[int, int]]

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]  # passed through
        self.moved = []
        self.times = []

    async def swipe(self, start: Point, end: Point, *, duration_ms: int, hold_ms: int = 0, deadline: Deadline) -> bool:
        self.moved.append((start, end))
        self.times.append((duration_ms, hold_ms))
        return await super().swipe(start, end, duration_ms=duration_ms, hold_ms=hold_ms, deadline=deadline)

    async def drag(self, start: Point, end: Point, *, duration_ms: int, deadline: Deadline) -> bool:
        self.moved.append((start, end))
        self.times.append((duration_ms, 0))
        return await super().drag(start, end, duration_ms=duration_ms, deadline=deadline)
