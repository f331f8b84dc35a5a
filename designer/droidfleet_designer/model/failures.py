"""What a server's failure means for whoever asked. Pure. What the server says is data: cut, and without the key."""

from __future__ import annotations

import re
from dataclasses import dataclass

from droidfleet_designer.model.port import (
    ModelBusyError,
    ModelDeniedError,
    ModelRefusedError,
    ModelUnavailableError,
)
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.protocol.wording import printable

MAX_SAID = 300
"""Characters of a server's own words."""

MAX_RETRY_AFTER_S = 3_600.0
"""A server that asks for more is asked again no sooner than anybody waits."""

_TOO_LONG = re.compile(r"context.{0,10}(length|window|size)|maximum.{0,20}tokens|too (long|many tokens)", re.IGNORECASE)
_NO_MONEY = re.compile(r"insufficient_quota|insufficient.{0,10}(balance|funds|credit)|billing", re.IGNORECASE)
_OVERLOADED = re.compile(r"overload|rate.?limit|too many requests|capacity", re.IGNORECASE)
_KEY = re.compile(r"\b(?:(?:sk|key|api)[-_]|Bearer )[A-Za-z0-9_\-*.]{6,}")

_BUSY = frozenset({429, 503, 529})
_DENIED = frozenset({401, 402, 403})


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known. ``status`` None: there was no answer, or a stream broke; ``said``: the server's words;
    ``retry_after``: its header of that name, as it came; ``connected``: there was a connection."""

    status: int | None
    said: str
    retry_after: str = ""
    connected: bool = True


def error_of(
    failure: Failure, *, key: str
) -> ModelBusyError | ModelUnavailableError | ModelDeniedError | ModelRefusedError:
    """The failure as an error of the port."""
    said = _quoted(failure.said, key)
    status = failure.status
    where = f"the model's server answered {status}{said}" if status is not None else f"the model's answer broke{said}"
    if not failure.connected:
        return ModelUnavailableError(
            "the model's server cannot be reached.", hint="Check model_url, and whether it can be reached from here."
        )
    if status in _DENIED or (status == 429 and _NO_MONEY.search(failure.said)):
        return ModelDeniedError(where, hint="Check the key, what is left on the account, and its rights to this model.")
    if status is not None and (status == 404 or 300 <= status < 400):
        return ModelDeniedError(where, hint="Check model_url (with its /v1) and the model's name.")
    if status in _BUSY or (status is None and _OVERLOADED.search(failure.said)):
        return ModelBusyError(where, retry_after_s=_seconds(failure.retry_after))
    if status is not None and 400 <= status < 500 and status not in (408, 409, 425):
        too_long = status == 413 or _TOO_LONG.search(failure.said) is not None
        return ModelRefusedError(where, too_long=too_long)
    return ModelUnavailableError(where)


def _quoted(said: str, key: str) -> str:
    """A server's words after a colon, ending the sentence."""
    text = said.replace(key, "***") if key else said
    text = printable(normalise(_KEY.sub("***", text)))
    if not text:
        return "."
    return f": {text[:MAX_SAID]}…" if len(text) > MAX_SAID else f": {text}"


def _seconds(header: str) -> float:
    """The header ``Retry-After`` in seconds; a date, or nothing readable, is 0."""
    try:
        seconds = float(header)
    except ValueError:
        return 0.0
    return min(max(0.0, seconds), MAX_RETRY_AFTER_S) if seconds == seconds else 0.0  # noqa: PLR0124 - no NaN
