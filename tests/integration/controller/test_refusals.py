"""What cannot start, or may not happen, says why with a stable code, and leaves everything as it was."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from droidfleet_controller.app import SERVE_FILE, serve
from droidfleet_controller.store.database import sqlite_url
from droidfleet_shared.errors import DroidfleetError
from support.controller import document, running_controller, scripted_agent, settings_for
from support.nats import NatsServer
from support.waiting import until

pytestmark = pytest.mark.integration


@contextmanager
def taken_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


async def refusal(data: Path, **settings: object) -> DroidfleetError:
    """The error of a controller that cannot start."""
    with pytest.raises(DroidfleetError) as caught:
        await serve(settings_for(data, **settings))
    return caught.value


@pytest.mark.parametrize(
    ("setting", "code"), [("listen", "PORT_TAKEN"), ("http", "PORT_TAKEN"), ("broker_listen", "BROKER_PORT_TAKEN")]
)
async def test_a_taken_port_is_named_and_everything_is_undone(tmp_path: Path, setting: str, code: str) -> None:
    with taken_port() as address:
        error = await refusal(tmp_path / "data", **{setting: address})
        assert error.code == code
        assert address in error.message
        assert "--" in error.hint
    assert not (tmp_path / "data" / SERVE_FILE).exists()
    async with running_controller(tmp_path / "data") as api:
        assert api.address


async def test_a_data_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    error = await refusal(tmp_path / "file" / "data")
    assert error.code == "DATA_FOLDER_NOT_WRITABLE"
    assert "--data" in error.hint


async def test_a_broker_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "nats").write_text("in the way")
    assert (await refusal(tmp_path / "data")).code == "DATA_FOLDER_NOT_WRITABLE"


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "droidfleet.db").write_bytes(b"nonsense " * 1_000)
    assert (await refusal(tmp_path / "data")).code == "DATABASE_UNAVAILABLE"


async def test_a_broker_that_ends_at_its_start_is_reported_with_its_words(tmp_path: Path) -> None:
    program = tmp_path / "nats-server"
    program.write_text("#!/bin/sh\necho '[FTL] it does not work' >&2\nexit 1\n")
    program.chmod(0o755)
    error = await refusal(tmp_path / "data", nats_server=program)
    assert error.code == "BROKER_NOT_STARTED"
    assert "it does not work" in error.hint


async def test_a_broker_program_that_cannot_run_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "nats-server"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    assert (await refusal(tmp_path / "data", nats_server=program)).code == "NATS_SERVER_NOT_FOUND"


@pytest.mark.parametrize(
    ("configuration", "code", "word"),
    [
        ("jetstream: false", "BROKER_WITHOUT_JETSTREAM", "-js"),
        ("max_payload: 65536", "BROKER_PAYLOAD_LIMIT", "max_payload"),
        ("feature_flags { js_ack_fc_v2: true }", "BROKER_ACK_FORM", "js_ack_fc_v2"),
    ],
)
async def test_a_broker_that_cannot_carry_a_fleet_is_refused_at_the_start(
    tmp_path: Path, nats_server: NatsServer, configuration: str, code: str, word: str
) -> None:
    nats_server.extra_config = configuration
    await asyncio.to_thread(nats_server.restart)
    error = await refusal(tmp_path / "data", nats=nats_server.url)
    assert (error.code, word in error.hint) == (code, True)


async def test_another_server_on_the_brokers_port_is_waited_for_and_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("droidfleet_controller.broker.admission.CONNECT_S", 0.5)

    async def stranger(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        writer.close()

    async with await asyncio.start_server(stranger, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with running_controller(tmp_path / "data", nats=f"nats://127.0.0.1:{port}") as api:
            answers: list[tuple[int, str]] = []
            async with asyncio.timeout(10):
                while not answers or "no NATS server" not in answers[-1][1]:
                    answers.append(await api.get("/readyz"))
    assert {status for status, _ in answers} == {503}


async def test_documents_of_another_database_are_emptied(tmp_path: Path, nats_server: NatsServer) -> None:
    async with scripted_agent(nats_server.url, "phone-01", hello=False) as agent:
        async with running_controller(tmp_path / "one", nats=nats_server.url) as api:
            assert (await agent.hello()).granted
            execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
            await agent.assigned(execution_id)
        async with running_controller(tmp_path / "two", nats=nats_server.url) as api:
            assert (await agent.hello()).granted
            await until(lambda: not agent.assignments, what="the document of the other database is emptied")


async def test_a_second_controller_in_one_data_folder_is_refused(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api:
        error = await refusal(tmp_path / "data")
        assert error.code == "DATA_FOLDER_IN_USE"
        assert "pid " in error.message
        assert (await api.get("/readyz"))[0] == 200


async def test_a_second_controller_on_one_database_is_refused(tmp_path: Path) -> None:
    url = str(sqlite_url(tmp_path / "shared.db"))
    async with running_controller(tmp_path / "one", database=url):
        assert (await refusal(tmp_path / "two", database=url)).code == "DATABASE_IN_USE"
    async with running_controller(tmp_path / "two", database=url):
        pass


async def test_a_second_controller_on_one_broker_is_refused(tmp_path: Path, nats_server: NatsServer) -> None:
    async with running_controller(tmp_path / "one", nats=nats_server.url):
        error = await refusal(tmp_path / "two", nats=nats_server.url)
        assert error.code == "BUS_IN_USE"
        assert "pid " in error.message
    async with running_controller(tmp_path / "two", nats=nats_server.url):
        pass


async def test_the_second_agent_of_a_name_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    async with (
        running_controller(tmp_path / "data") as api,
        scripted_agent(api.nats, "phone-01") as first,
        scripted_agent(api.nats, "phone-01", instance="i-2", host_id="h-2", hello=False) as second,
    ):
        reply = await second.hello()
        assert not reply.granted
        assert "pid 4711 on testhost" in reply.holder
        await second.beat()
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        await first.run(execution_id)
        await api.until_state(execution_id, "SUCCEEDED")
        kinds = [event.kind for event in await api.events(device="phone-01")]
        assert kinds[:2] == ["NameGranted", "NameRefused"]


async def test_a_new_process_of_the_same_host_takes_the_name_over(tmp_path: Path) -> None:
    async with (
        running_controller(tmp_path / "data") as api,
        scripted_agent(api.nats, "phone-01"),
        scripted_agent(api.nats, "phone-01", instance="i-2") as second,
    ):
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        await second.run(execution_id)
        await api.until_state(execution_id, "SUCCEEDED")
