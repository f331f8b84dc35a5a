"""What a failed connection means, in words for people."""

from __future__ import annotations

import pytest
from nats.errors import Error

from droidfleet_shared.bus.reasons import why


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (TimeoutError(), "no answer in time"),
        (Error("nats: empty response from server when expecting INFO message"), "no NATS server"),
        (Error("nats: 'Authorization Violation'"), "refuses these credentials"),
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 4222)"), "nobody listens there"),
        (Error("nats: something new"), "nats: something new"),
        (OSError(), "OSError"),
    ],
)
def test_a_failure_is_told_by_its_meaning_and_else_as_it_is(error: Exception, meaning: str) -> None:
    assert meaning in why(error)
