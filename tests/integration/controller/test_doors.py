"""What stands beside the services: health, reflection, metrics, readiness, token and TLS, signals."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from droidfleet.v1 import fleet_pb2, fleet_pb2_grpc
from droidfleet_controller.api.server import SERVICES
from droidfleet_controller.app import SERVE_FILE
from support.controller import CALL_S, document, running_controller, scripted_agent
from support.waiting import until

pytestmark = pytest.mark.integration


async def test_every_service_is_healthy_and_listed(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api:
        health = health_pb2_grpc.HealthStub(api.channel)  # type: ignore[no-untyped-call]  # untyped stubs
        for name in ("", *SERVICES):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=name), timeout=CALL_S)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        reflection = reflection_pb2_grpc.ServerReflectionStub(api.channel)  # type: ignore[no-untyped-call]  # as above
        call = reflection.ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=CALL_S
        )
        listed = {service.name async for answer in call for service in answer.list_services_response.service}
        assert listed >= set(SERVICES)


async def test_metrics_count_what_happened_with_few_labels(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, "phone-01") as agent:
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        await agent.run(execution_id)
        await api.until_state(execution_id, "SUCCEEDED")
        status, text = await api.get("/metrics")
        assert status == 200
        lines = text.splitlines()
        assert 'droidfleet_executions_total{result="succeeded"} 1.0' in lines
        assert 'droidfleet_devices{state="online"} 1.0' in lines
        assert 'droidfleet_events_ingested_total{outcome="applied"} 7.0' in lines
        assert "droidfleet_accept_seconds_count 1.0" in lines
        assert "droidfleet_broker_connected 1.0" in lines
        assert 'droidfleet_api_requests_total{method="RunTask",status="OK"} 1.0' in lines
        assert "phone-01" not in text
        assert execution_id not in text


async def test_only_the_three_paths_exist(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api:
        assert (await api.get("/healthz")) == (200, "ok\n")
        assert (await api.get("/readyz"))[0] == 200
        assert (await api.get("/"))[0] == 404


async def test_with_a_token_set_nobody_else_is_let_in(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("open sesame\n")
    async with running_controller(tmp_path / "data", api_token_file=token_file) as api:
        fleet = fleet_pb2_grpc.FleetServiceStub(api.channel)
        for metadata in ((), (("authorization", "Bearer wrong"),)):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await fleet.ListDevices(fleet_pb2.ListDevicesRequest(), timeout=CALL_S, metadata=metadata)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert dict(caught.value.trailing_metadata())["droidfleet-code"] == "TOKEN_REQUIRED"
            with pytest.raises(grpc.aio.AioRpcError):
                [_ async for _ in fleet.WatchEvents(fleet_pb2.WatchEventsRequest(), timeout=CALL_S, metadata=metadata)]
        right = (("authorization", "Bearer open sesame"),)
        assert await fleet.ListDevices(fleet_pb2.ListDevicesRequest(), timeout=CALL_S, metadata=right) is not None
        assert (await api.get("/metrics"))[0] == 401
        assert (await api.get("/metrics", token="open sesame"))[0] == 200
        assert (await api.get("/healthz"))[0] == 200


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_a_signal_ends_everything_in_order_with_its_code(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    data = tmp_path / "data"
    environment = {
        **os.environ,
        "DROIDFLEET_LISTEN": "127.0.0.1:0",
        "DROIDFLEET_HTTP": "127.0.0.1:0",
        "DROIDFLEET_BROKER_LISTEN": "127.0.0.1:0",
        "DROIDFLEET_DATA": str(data),
    }
    program = Path(sys.executable).with_name("droidfleet")
    process = subprocess.Popen(  # noqa: ASYNC220  # waited for below
        [program, "serve"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        await until(lambda: (data / SERVE_FILE).exists() or process.poll() is not None, within_s=90)
        assert process.poll() is None, "it ended by itself"
        where = json.loads((data / SERVE_FILE).read_text())
        broker = int((data / "nats" / "nats-server.pid").read_text())
        assert where["pid"] == process.pid
        process.send_signal(number)
        await until(lambda: process.poll() is not None)
        assert process.stderr is not None
        assert process.returncode == code, process.stderr.read().decode()
        assert not (data / SERVE_FILE).exists()
        with pytest.raises(ProcessLookupError):
            os.kill(broker, 0)
    finally:
        process.kill()
        process.communicate()


async def test_the_data_folder_is_private(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data"):
        assert (tmp_path / "data").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")
async def test_with_tls_the_api_speaks_nothing_else(tmp_path: Path) -> None:
    key, certificate, token = (tmp_path / name for name in ("key.pem", "cert.pem", "token"))
    subprocess.run(  # noqa: ASYNC221  # before anything runs
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    token.write_text("open sesame")
    settings = {"tls_cert": certificate, "tls_key": key, "api_token_file": token}
    async with running_controller(tmp_path / "data", **settings) as api:
        with pytest.raises(grpc.aio.AioRpcError):
            await api.fleet.ListDevices(fleet_pb2.ListDevicesRequest(), timeout=2)
        port = api.address.rpartition(":")[2]
        credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
        async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
            fleet = fleet_pb2_grpc.FleetServiceStub(channel)
            right = (("authorization", "Bearer open sesame"),)
            answer = await fleet.ListDevices(fleet_pb2.ListDevicesRequest(), timeout=CALL_S, metadata=right)
            assert answer.next_page_token == ""
        http_port = api.http.rpartition(":")[2]
        context = ssl.create_default_context(cafile=str(certificate))
        url = f"https://localhost:{http_port}/healthz"
        body = await asyncio.to_thread(lambda: urllib.request.urlopen(url, context=context, timeout=CALL_S).read())
        assert body == b"ok\n"
