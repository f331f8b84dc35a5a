"""The product's log in a simulated world: silent, but for what speaks of a defect, which is a finding.

With ``verbose`` every line stands in the history, to read what led to a finding; such a history has another digest.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from structlog.typing import EventDict, WrappedLogger

from simulation.history import History

DEFECTS = frozenset({"execution_broke"})
"""Lines that speak of a defect and come without an exception."""


@contextmanager
def listening(history: History, *, verbose: bool) -> Iterator[None]:
    """Reads the log within the block."""
    before = structlog.get_config()

    def read(_logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        said = event.pop("event")
        if event.pop("exc_info", False):
            history.finding(f"the log says {said}: {event} {traceback.format_exc()}")
        elif said in DEFECTS:
            history.finding(f"the log says {said}: {event}")
        elif verbose:
            history.note(f"({method})", f"{said} " + " ".join(f"{name}={value}" for name, value in event.items()))
        raise structlog.DropEvent

    structlog.configure(
        processors=[read],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO if verbose else logging.ERROR),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
