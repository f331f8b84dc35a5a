"""Where a model may be, and where its key may go."""

from __future__ import annotations

import pytest

from droidfleet_designer.model.settings import ModelSettings
from droidfleet_shared.errors import InvalidInputError

KEY = "sk-secret"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "http://127.0.0.1:11434/v1",
        "http://localhost:8000/v1",
        "http://LOCALHOST:8000/v1",
        "http://[::1]:8000/v1",
    ],
)
def test_a_key_goes_where_nobody_else_can_read_it(url: str) -> None:
    assert ModelSettings(base_url=url, model="m", key=KEY).key == KEY


@pytest.mark.parametrize(
    "url",
    ["http://192.168.1.7:8000/v1", "http://models.example/v1", "http://localhost.example/v1", "http://0.0.0.0/v1"],
)
def test_a_key_does_not_travel_in_the_clear(url: str) -> None:
    with pytest.raises(InvalidInputError, match="plain http") as raised:
        ModelSettings(base_url=url, model="m", key=KEY)
    assert KEY not in str(raised.value)
    assert "https" in raised.value.hint


def test_a_server_that_needs_no_key_may_be_plain_http() -> None:
    assert not ModelSettings(base_url="http://192.168.1.7:8000/v1", model="m").is_local


@pytest.mark.parametrize(
    "url", ["", "api.openai.com/v1", "ftp://host/v1", "https:///v1", "http://[::1/v1", "http://h:x/v1"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="URL"):
        ModelSettings(base_url=url, model="m")


@pytest.mark.parametrize("url", ["https://me:hush@host/v1", "https://hush@host/v1", "https://host/v1?key=hush"])
def test_a_url_that_holds_a_secret_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        ModelSettings(base_url=url, model="m")
    assert "hush" not in f"{raised.value} {raised.value.hint}"


def test_a_model_needs_a_name() -> None:
    with pytest.raises(InvalidInputError, match="name of the model"):
        ModelSettings(base_url="https://host/v1", model="")


@pytest.mark.parametrize(
    ("host", "counts"),
    [
        ("api.openai.com", True),
        ("eu.api.openai.com", True),
        ("me.openai.azure.com", True),
        ("api.deepseek.com", False),
        ("notopenai.com", False),
        ("openai.com.example", False),
    ],
)
def test_only_openai_counts_thinking_into_the_bound(host: str, counts: bool) -> None:
    assert ModelSettings(base_url=f"https://{host}/v1", model="m").counts_thinking == counts
