"""Logging set-up of every program: events with fields, on stderr, for people on a terminal and as JSON elsewhere.

Never logs secrets: whatever a field is called that `SECRET_WORDS` names is masked, as a second line of defence.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LEVELS = ("debug", "info", "warning", "error")

SECRET_WORDS = frozenset({"password", "token", "secret", "credentials", "authorization", "api_key"})


def configure_logging(level: str = "info", *, stream: TextIO | None = None) -> None:
    """Sets up structlog, and the standard library's logging for the libraries that use it (warnings and worse).

    ``level``: one of `LEVELS`. ``stream``: standard error unless given; stdout belongs to a program's own output.
    """
    out = stream or sys.stderr
    human = out.isatty()
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=max(number, logging.WARNING), stream=out, force=True, format="%(name)s: %(message)s")
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if human else "iso", utc=not human),
        mask_secrets,
    ]
    if human:
        processors.append(structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback))
    else:
        processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(file=out),
    )


def mask_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replaces the values of fields whose names speak of secrets."""
    for key in event:
        if key.lower() in SECRET_WORDS:
            event[key] = "***"
    return event
