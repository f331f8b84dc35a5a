"""Fixtures that every test may use, from `tests/support`, and what every test needs set up."""

from __future__ import annotations

import sys

import structlog

pytest_plugins = ["support.session", "support.adb"]


class _CurrentStderr:
    """Standard error as it is now: pytest puts another stream there for each test and closes it afterwards."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


structlog.configure(
    logger_factory=structlog.WriteLoggerFactory(file=_CurrentStderr()),  # type: ignore[arg-type]  # all it needs
    cache_logger_on_first_use=False,
)
