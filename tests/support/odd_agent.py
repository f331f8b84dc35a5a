"""`python -m support.odd_agent`: `droidfleet-agent` on a host whose wall clock is wrong, or of another version.

Patched in from outside, by the environment: ``ODD_CLOCK_S``, how far the wall clock is ahead; ``ODD_VERSION``.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

from droidfleet_agent.cli import main
from droidfleet_agent.link import heartbeat
from droidfleet_shared.clock import SystemClock

PROGRAM = (sys.executable, "-m", "support.odd_agent")
CLOCK = "ODD_CLOCK_S"
VERSION = "ODD_VERSION"


def environment(*, clock_s: float = 0.0, version: str = "") -> dict[str, str]:
    """The environment of such an agent."""
    return {"PYTHONPATH": str(Path(__file__).parents[1]), CLOCK: str(clock_s), VERSION: version}


def _run() -> int:
    ahead = timedelta(seconds=float(os.environ[CLOCK]))

    def now(_clock: SystemClock) -> datetime:
        return datetime.now(UTC) + ahead

    with (
        mock.patch.object(SystemClock, "now", now),
        mock.patch.object(heartbeat, "_VERSION", os.environ[VERSION] or heartbeat._VERSION),
    ):
        return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(_run())
