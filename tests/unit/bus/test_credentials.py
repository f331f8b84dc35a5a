"""Credentials come from files and the environment, and are never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from droidfleet_shared.bus import credentials as module
from droidfleet_shared.bus.credentials import BusCredentials, check_url, load_credentials
from droidfleet_shared.errors import InvalidInputError


def _file(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "nats.credentials"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_line_with_a_colon_is_user_and_password(tmp_path: Path) -> None:
    credentials = load_credentials(_file(tmp_path, "phone-01:pass:word\n"), {})
    assert credentials == BusCredentials(user="phone-01", password="pass:word")


def test_a_line_without_a_colon_is_a_token(tmp_path: Path) -> None:
    assert load_credentials(_file(tmp_path, "t0ken\n"), {}) == BusCredentials(token="t0ken")


@pytest.mark.parametrize("there", [True, False])
def test_a_creds_file_is_left_to_the_client_which_needs_nkeys(
    tmp_path: Path, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: object() if there and name == "nkeys" else None)
    file = _file(tmp_path, "-----BEGIN NATS USER JWT-----\nabc\n")
    if there:
        assert load_credentials(file, {}) == BusCredentials(creds_file=file)
    else:
        with pytest.raises(InvalidInputError, match="pip install nkeys"):
            load_credentials(file, {})


def test_the_environment_serves_when_there_is_no_file(tmp_path: Path) -> None:
    assert load_credentials(None, {}) is None
    by_user = load_credentials(None, {"DROIDFLEET_NATS_USER": "a", "DROIDFLEET_NATS_PASSWORD": "b"})
    assert by_user == BusCredentials(user="a", password="b")
    by_file = load_credentials(None, {"DROIDFLEET_NATS_CREDENTIALS": str(_file(tmp_path, "t"))})
    assert by_file == BusCredentials(token="t")


@pytest.mark.parametrize(("text", "mode", "what"), [("secret", 0o644, "chmod 600"), ("\n", 0o600, "empty")])
def test_a_file_that_is_open_to_others_or_empty_is_refused(tmp_path: Path, text: str, mode: int, what: str) -> None:
    with pytest.raises(InvalidInputError, match=what):
        load_credentials(_file(tmp_path, text, mode), {})


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        load_credentials(tmp_path / "none", {})


def test_secrets_are_not_in_the_repr() -> None:
    assert "hush" not in repr(BusCredentials(user="a", password="hush", token="hush"))


@pytest.mark.parametrize("url", ["nats://127.0.0.1:4222", "tls://nats.example:4222", "a:1,b:2", "nats://[::1]:4222"])
def test_addresses_of_a_server_or_several_are_taken(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize("url", ["", "http://a:1", "nats://", "nats://a:99999", "nats://a:1,,nats://b:1"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="BAD_NATS_URL"):
        check_url(url)


@pytest.mark.parametrize("url", ["nats://user:hush@a:1", "http://user:hush@a:1", "nats://hush@a:1"])
def test_an_address_with_a_secret_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_url(url)
    assert "hush" not in str(refused.value)
