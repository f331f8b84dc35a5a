"""Fixtures that every test may use, from `tests/support`, and what every test needs set up."""

from __future__ import annotations

import logging
import sys

import pytest
import structlog

pytest_plugins = ["support.session", "support.adb"]


class _CurrentStderr:
    """Standard error as it is now: pytest puts another stream there for each test and closes it afterwards."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def pytest_configure() -> None:
    _log_to_stderr()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """A test may have set up logging as programs do: to the stream of that moment, which fixtures close next."""
    _log_to_stderr()
    for handler in logging.root.handlers[:]:
        if type(handler) is logging.StreamHandler:  # pytest's own are of other classes
            logging.root.removeHandler(handler)


def _log_to_stderr() -> None:
    structlog.reset_defaults()
    structlog.configure(
        logger_factory=structlog.WriteLoggerFactory(file=_CurrentStderr()),  # type: ignore[arg-type]  # all it needs
    )
