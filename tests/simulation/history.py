"""What happened in one simulated world, line by line: the thing that two runs of a seed must have in common."""

from __future__ import annotations

import asyncio
from hashlib import sha256


class History:
    """The lines, with the virtual second of each. ``findings``: the invariants that did not hold, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.findings: list[str] = []
        self.broken = asyncio.Event()
        """Set with the first finding: nothing that follows is worth simulating."""

    def note(self, who: str, what: str) -> None:
        """One line."""
        self.lines.append(f"{asyncio.get_running_loop().time():10.4f}  {who:<14} {what}")

    def finding(self, what: str) -> None:
        """An invariant does not hold."""
        self.note("INVARIANT", what)
        self.findings.append(what)
        self.broken.set()

    def expect(self, holds: bool, what: str) -> None:
        """Notes ``what`` as a finding unless it ``holds``."""
        if not holds:
            self.finding(what)

    @property
    def digest(self) -> str:
        """Of all lines."""
        return sha256("\n".join(self.lines).encode()).hexdigest()
