"""A server's failure is told as what it means for whoever asked."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_designer.model.failures import MAX_RETRY_AFTER_S, MAX_SAID, Failure, error_of
from droidfleet_designer.model.port import ModelBusyError, ModelRefusedError

KEY = "abcdef-0123456789"


@pytest.mark.parametrize(
    ("status", "said", "code"),
    [
        (429, "Rate limit reached", "MODEL_BUSY"),
        (429, "{'code': 'insufficient_quota'}", "MODEL_DENIED"),
        (503, "Loading model", "MODEL_BUSY"),
        (529, "", "MODEL_BUSY"),
        (401, "", "MODEL_DENIED"),
        (402, "Insufficient Balance", "MODEL_DENIED"),
        (403, "", "MODEL_DENIED"),
        (404, "", "MODEL_DENIED"),
        (307, "", "MODEL_DENIED"),
        (400, "Invalid schema", "MODEL_REFUSED_REQUEST"),
        (422, "", "MODEL_REFUSED_REQUEST"),
        (413, "", "MODEL_REFUSED_REQUEST"),
        (408, "", "MODEL_UNAVAILABLE"),
        (500, "", "MODEL_UNAVAILABLE"),
        (502, "", "MODEL_UNAVAILABLE"),
        (None, "", "MODEL_UNAVAILABLE"),
        (None, "The engine is currently overloaded", "MODEL_BUSY"),
    ],
)
def test_a_status_has_a_code(status: int | None, said: str, code: str) -> None:
    assert error_of(Failure(status=status, said=said), key="").code == code


@pytest.mark.parametrize(
    ("said", "too_long"),
    [
        ("{'code': 'context_length_exceeded'}", True),
        ("This model's maximum context length is 8192 tokens.", True),
        ("the request exceeds the available context size", True),
        ("prompt is too long: 210000 tokens > 200000 maximum", True),
        ("Invalid schema for function 'tap'", False),
    ],
)
def test_a_conversation_that_is_too_long_is_told_from_one_that_is_wrong(said: str, too_long: bool) -> None:
    error = error_of(Failure(status=400, said=said), key="")
    assert isinstance(error, ModelRefusedError)
    assert error.too_long == too_long


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("20", 20.0),
        ("0.5", 0.5),
        ("", 0.0),
        ("-3", 0.0),
        ("nan", 0.0),
        ("inf", MAX_RETRY_AFTER_S),
        ("1e9", MAX_RETRY_AFTER_S),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
    ],
)
def test_what_a_server_asks_to_wait_is_read(header: str, seconds: float) -> None:
    error = error_of(Failure(status=429, said="", retry_after=header), key="")
    assert isinstance(error, ModelBusyError)
    assert error.retry_after_s == seconds


@settings(max_examples=50)
@given(st.text(max_size=400), st.text(max_size=400), st.sampled_from([None, 400, 401, 429, 500]))
def test_a_message_is_short_on_one_line_and_without_the_key(before: str, after: str, status: int | None) -> None:
    error = error_of(Failure(status=status, said=f"{before}{KEY}{after}"), key=KEY)
    assert KEY not in error.message
    assert not {"Cc", "Zl", "Zp"} & {unicodedata.category(each) for each in error.message}
    assert len(error.message) < MAX_SAID + 60


@pytest.mark.parametrize("said", ["sk-proj-ab12cd34ef", "Bearer ab12cd34ef", "Key: sk-ab12cd********ef56"])
def test_what_looks_like_a_key_is_left_out(said: str) -> None:
    assert "ab12cd" not in error_of(Failure(status=401, said=said), key="").message


def test_words_about_a_key_are_no_key() -> None:
    said = "Incorrect API key provided."
    assert said in error_of(Failure(status=401, said=said), key="").message


def test_a_server_that_cannot_be_reached_is_told_from_one_that_breaks_off() -> None:
    away = error_of(Failure(status=None, said="", connected=False), key="")
    broke = error_of(Failure(status=None, said=""), key="")
    assert (away.message, broke.message) == ("the model's server cannot be reached.", "the model's answer broke.")
