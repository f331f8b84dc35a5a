"""What can stand in the way of a start: each is said in one line with a code, and nothing is left running."""

from __future__ import annotations

import json
import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from support.tls import CERTIFICATE, PRIVATE_KEY
from support.workplace import Workplace, eventually, left_running

pytestmark = pytest.mark.e2e

ANY_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--broker-listen", "127.0.0.1:0")
START_S = 30.0


def first_code(text: str) -> str:
    """The code of the first line that is an error for people; others are log lines."""
    return next((line.partition(":")[0] for line in text.splitlines() if line.partition(":")[0].isupper()), text)


@pytest.mark.parametrize("option", ["--listen", "--http", "--broker-listen"])
def test_port_that_is_taken_is_named(workplace: Workplace, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        ran = workplace.droidfleet("serve", "--data", "data", *ANY_PORTS, option, address)
    assert (ran.code, "PORT_TAKEN" in first_code(ran.err), address in ran.err) == (4, True, True), ran
    assert left_running(workplace.folder) == []


def test_data_folder_that_cannot_be_written_is_named(workplace: Workplace) -> None:
    (workplace.folder / "file").touch()
    ran = workplace.droidfleet("serve", "--data", "file/data", *ANY_PORTS)
    assert (ran.code, first_code(ran.err)) == (4, "DATA_FOLDER_NOT_WRITABLE"), ran


def test_other_addresses_than_loopback_are_refused(workplace: Workplace) -> None:
    ran = workplace.droidfleet("serve", "--data", "data", *ANY_PORTS, "--listen", "0.0.0.0:0")
    assert (ran.code, first_code(ran.err)) == (4, "UNSAFE_ADDRESS"), ran


def test_second_controller_in_one_folder_is_refused(workplace: Workplace) -> None:
    workplace.start("first", "droidfleet", "serve", "--data", str(workplace.folder / "data"), *ANY_PORTS)
    eventually((workplace.folder / "data" / "serve.json").exists, within_s=START_S, what="the first one serves")
    ran = workplace.droidfleet("serve", "--data", "data", *ANY_PORTS)
    assert (ran.code, first_code(ran.err)) == (4, "DATA_FOLDER_IN_USE"), ran


def test_controller_whose_broker_is_down_answers_and_says_what_is_missing(workplace: Workplace) -> None:
    data = workplace.folder / "data"
    nobody = "nats://127.0.0.1:1"
    part = workplace.start("serve", "droidfleet", "serve", "--data", str(data), *ANY_PORTS, "--nats", nobody)
    part.wait_until((data / "serve.json").exists, within_s=START_S, what="serving")
    served = json.loads((data / "serve.json").read_text())
    assert workplace.droidfleet("task", "list", "--api", served["api"]).code == 0
    with pytest.raises(HTTPError, match="503") as refused:
        urlopen(f"http://{served['http']}/readyz")
    refused.value.close()


def test_agent_whose_broker_is_down_waits_for_it(workplace: Workplace) -> None:
    part = workplace.start(
        "agent", "droidfleet-agent", "run", "--name", "a", "--serial", "127.0.0.1:9", "--nats", "nats://127.0.0.1:1"
    )
    part.wait_until(lambda: "127.0.0.1:1" in part.log_tail(), within_s=START_S, what="saying which broker it misses")


def test_controller_with_tls_and_a_token_may_listen_anywhere_and_lets_only_bearers_in(workplace: Workplace) -> None:
    data, folder = workplace.folder / "data", workplace.folder
    for name, text in (("cert", CERTIFICATE), ("key", PRIVATE_KEY), ("token", "s3cret"), ("wrong", "guess")):
        (folder / name).write_text(text)
    secured = {"DROIDFLEET_TLS_CERT": "cert", "DROIDFLEET_TLS_KEY": "key", "DROIDFLEET_API_TOKEN_FILE": "token"}
    env = {**workplace.env, **{name: str(folder / file) for name, file in secured.items()}}
    serving = Workplace(folder, env, workplace.parts)
    part = serving.start("serve", "droidfleet", "serve", "--data", str(data), *ANY_PORTS, "--listen", "0.0.0.0:0")
    part.wait_until((data / "serve.json").exists, within_s=START_S, what="serving")
    api = "localhost:" + json.loads((data / "serve.json").read_text())["api"].rpartition(":")[2]

    bearer = Workplace(folder, {**env, "DROIDFLEET_TLS_CA": str(folder / "cert")}, workplace.parts)
    assert bearer.droidfleet("task", "list", "--api", api).code == 0
    env = {**bearer.env, "DROIDFLEET_API_TOKEN_FILE": str(folder / "wrong")}
    refused = Workplace(folder, env, workplace.parts).droidfleet("task", "list", "--api", api)
    assert (refused.code, first_code(refused.err)) == (4, "TOKEN_REQUIRED"), refused
