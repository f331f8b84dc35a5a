"""Fixtures that every test may use, from `tests/support`, and what every test needs set up."""

from __future__ import annotations

import gc
import logging
import sys
import warnings
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

pytest_plugins = ["support.session", "support.ports", "support.adb", "support.summary", "support.order"]

# What an example costs says how busy the machine is, not whether the code is right. On CI, its profile is the parent.
settings.register_profile("unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


class _CurrentStderr:
    """Standard error as it is now: pytest puts another stream there for each test and closes it afterwards."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


_WITH_BROKERS = ("integration/agent", "integration/bus", "integration/controller", "integration/mcp", "faults", "e2e")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """The broker's client leaves a connection that broke to the collector, which would find it in any later test and
    call that one leaky. So it is collected where it broke."""
    result = yield
    if any(part in item.path.as_posix() for part in _WITH_BROKERS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
    return result


def pytest_configure() -> None:
    _log_to_stderr()


def pytest_collection_finish() -> None:
    """What is there by now stays to the end: looking it through for rubbish at every turn costs a tenth of the time."""
    gc.collect()
    gc.freeze()


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
