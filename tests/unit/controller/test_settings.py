"""Settings, addresses, and what is refused because it would be unsafe."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from droidfleet_controller.settings import ENV_PREFIX, ServeSettings, load_settings
from droidfleet_shared.errors import DeniedError, DroidfleetError, InvalidInputError
from droidfleet_shared.net import Endpoint, parse_endpoint


def test_everything_has_a_default_on_loopback() -> None:
    settings = load_settings({}, {"HOME": "/home/somebody", "XDG_DATA_HOME": "/var/data"})
    assert settings.listen_endpoint == Endpoint("127.0.0.1", 7400)
    assert settings.http_endpoint == Endpoint("127.0.0.1", 7401)
    assert settings.broker_endpoint == Endpoint("127.0.0.1", 7422)


@pytest.mark.parametrize("name", ServeSettings.model_fields)
def test_every_setting_can_stand_in_the_environment(name: str) -> None:
    values = {
        "listen": "127.0.0.1:1",
        "http": "127.0.0.1:2",
        "broker_listen": "[::1]:3",
        "nats": "nats://127.0.0.1:4",
        "heartbeat_s": "2.5",
        "artifact_quota_mb": "100",
        "retry_budget_percent": "20",
        "tls_cert": "/c",
        "tls_key": "/k",
        "model_url": "https://models.example/v1",
        "model": "m",
        "model_vision": "True",
        "model_prices": "2.5,10",
        "model_currency": "EUR",
        "draft_tokens": "5000",
        "draft_turns": "9",
        "draft_money": "0.5",
        "drafts": "2",
        "practice_model": "True",
    }
    together = {"tls_cert": ["tls_key"], "tls_key": ["tls_cert"], "model": ["model_url"], "model_url": ["model"]}
    together["draft_money"] = ["model_prices"]
    names = [name, *together.get(name, [])]
    environ = {f"{ENV_PREFIX}{each.upper()}": values.get(each, "/some/where") for each in names}
    found = getattr(load_settings({}, environ), name)
    plain = found.get_secret_value() if isinstance(found, SecretStr) else str(found)
    assert plain == environ[f"{ENV_PREFIX}{name.upper()}"]


def test_the_key_of_a_model_is_never_shown() -> None:
    settings = load_settings({}, {"DROIDFLEET_MODEL_KEY": "sk-secret"})
    assert "sk-secret" not in f"{settings!r} {settings}"
    assert settings.model_key.get_secret_value() == "sk-secret"


@pytest.mark.parametrize("text", ["2.5", "2.5,", "a,b", "1,2,3", "-1,2", "1e3,2", " 1,2"])
def test_prices_are_two_numbers(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        load_settings({"model_prices": text}, {})
    assert "model_prices" in caught.value.message


@pytest.mark.parametrize(
    "given",
    [
        {"model": "m"},
        {"model_url": "https://models.example/v1"},
        {"draft_money": 1.0},
        {"practice_model": True, "model": "m", "model_url": "https://models.example/v1"},
    ],
)
def test_settings_of_a_model_that_do_not_go_together_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        load_settings(given, {})
    assert caught.value.code == "BAD_SETTING"
    assert caught.value.hint


def test_a_home_folder_in_the_environment_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert load_settings({}, {"DROIDFLEET_DATA": "~/fleet"}).data == Path("/home/somebody/fleet")


def test_the_command_line_wins_over_the_environment() -> None:
    environ = {"DROIDFLEET_LISTEN": "127.0.0.1:1", "DROIDFLEET_HTTP": "127.0.0.1:2"}
    settings = load_settings({"listen": "127.0.0.1:9", "http": None}, environ)
    assert (settings.listen, settings.http) == ("127.0.0.1:9", "127.0.0.1:2")


@pytest.mark.parametrize("address", ["0.0.0.0:7400", "192.168.0.7:7400", "[::]:7400", "controller.example:7400"])
@pytest.mark.parametrize("setting", ["listen", "http"])
def test_an_address_that_others_reach_is_refused_and_the_sentence_says_what_to_set(setting: str, address: str) -> None:
    with pytest.raises(DeniedError) as caught:
        load_settings({setting: address}, {})
    assert caught.value.code == "UNSAFE_ADDRESS"
    for variable in ("DROIDFLEET_TLS_CERT", "DROIDFLEET_TLS_KEY", "DROIDFLEET_API_TOKEN_FILE"):
        assert variable in caught.value.hint


def test_an_address_that_others_reach_is_allowed_with_tls_and_a_token() -> None:
    given = {"listen": "0.0.0.0:7400", "tls_cert": Path("/c"), "tls_key": Path("/k"), "api_token_file": Path("/t")}
    assert load_settings(given, {}).listen_endpoint == Endpoint("0.0.0.0", 7400)
    with pytest.raises(DeniedError):
        load_settings({**given, "api_token_file": None}, {})


def test_the_embedded_broker_never_listens_to_others() -> None:
    with pytest.raises(DeniedError) as caught:
        load_settings({"broker_listen": "0.0.0.0:7422"}, {})
    assert "DROIDFLEET_NATS" in caught.value.hint
    elsewhere = load_settings({"broker_listen": "0.0.0.0:7422", "nats": "nats://nats.example:4222"}, {})
    assert elsewhere.nats == "nats://nats.example:4222"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"listen": "7400"}, "BAD_ADDRESS"),
        ({"heartbeat_s": "0"}, "BAD_SETTING"),
        ({"heartbeat_s": "soon"}, "BAD_SETTING"),
        ({"tls_cert": "/c"}, "BAD_SETTING"),
        ({"nats": "http://x"}, "BAD_NATS_URL"),
        ({"nats": "nats://user:secret@x:4222"}, "SECRET_IN_URL"),
        ({"database": "postgresql://me:secret@db/droidfleet"}, "SECRET_ON_COMMAND_LINE"),
        ({"unknown": "1"}, "BAD_SETTING"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_without_repeating_secrets(given: dict[str, str], code: str) -> None:
    with pytest.raises(DroidfleetError) as caught:
        load_settings(given, {})
    assert caught.value.code == code
    assert "secret" not in str(caught.value)


def test_a_database_password_may_stand_in_the_environment() -> None:
    url = "postgresql://me:secret@db/droidfleet"
    assert load_settings({}, {"DROIDFLEET_DATABASE": url}).database == url


@pytest.mark.parametrize(
    ("text", "endpoint", "loopback"),
    [
        ("127.0.0.1:7400", Endpoint("127.0.0.1", 7400), True),
        ("127.9.9.9:0", Endpoint("127.9.9.9", 0), True),
        ("localhost:1", Endpoint("localhost", 1), True),
        ("[::1]:65535", Endpoint("::1", 65_535), True),
        ("[fe80::1]:1", Endpoint("fe80::1", 1), False),
        ("0.0.0.0:1", Endpoint("0.0.0.0", 1), False),
        ("localhost.example:1", Endpoint("localhost.example", 1), False),
        (" 10.0.0.1:1 ", Endpoint("10.0.0.1", 1), False),
    ],
)
def test_an_address_is_read(text: str, endpoint: Endpoint, *, loopback: bool) -> None:
    read = parse_endpoint(text, setting="listen")
    assert read == endpoint
    assert read.loopback is loopback
    assert parse_endpoint(str(read), setting="listen") == read


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "7400", "127.0.0.1", "127.0.0.1:", ":7400", "127.0.0.1:65536", "127.0.0.1:-1", "::1:7400", "[::1]"),
        *("[::1:7400", "[127.0.0.1]:1", "a b:1", "http://127.0.0.1:1", "127.0.0.1:٣", "a..b:1", "unix:/tmp/x"),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_endpoint(text, setting="listen")
    assert caught.value.code == "BAD_ADDRESS"


@given(text=st.text())
def test_reading_an_address_never_crashes(text: str) -> None:
    try:
        endpoint = parse_endpoint(text, setting="listen")
    except InvalidInputError:
        return
    assert 0 <= endpoint.port <= 65_535
