"""Parts that die while a task is under way: what was accepted is carried out once, and its result arrives."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from droidfleet_demo.checks import ORDER_PLACED
from droidfleet_demo.fleet import Fleet, Phone, start_phones
from droidfleet_demo.processes import Part
from support.workplace import CHECKOUT, Workplace, eventually

pytestmark = pytest.mark.e2e

ORDER = str(CHECKOUT / "examples" / "shop-order.json")
END_S = 60.0
BACK_S = 45.0
"""For a phone or a broker to be found again: adb tries about every ten seconds, links back off to 30 s at most."""


def orders(phone: Phone) -> int:
    return sum(1 for effect in phone.effects() if effect["kind"] == ORDER_PLACED)


def order_under_way(place: Workplace, phone: Phone) -> tuple[Part, str]:
    """Orders tea, and returns the watching program and the run's id once the phone is at it.

    The watching program is told of it. One started for each look would come too late on a busy machine.
    """
    name = f"watching-{uuid4().hex}"
    watching = place.start(name, "droidfleet", "task", "run", ORDER, "--device", phone.name, "--watch")
    watching.wait_until(lambda: "RUNNING" in watching.log_tail(), within_s=END_S, what="it runs")
    told = re.search(r"^run (\S+)$", watching.log_tail(), re.M)
    assert told is not None
    return watching, told.group(1)


def test_broker_killed_in_mid_task_loses_nothing(fleet: Fleet, at_fleet: Workplace) -> None:
    phone = fleet.phones[0]
    before = orders(phone)
    watching, _ = order_under_way(at_fleet, phone)
    broker = next(
        child for child in psutil.Process(fleet.controller.process.pid).children() if child.name() == "nats-server"
    )
    broker.kill()
    assert (watching.process.wait(END_S), orders(phone)) == (0, before + 1), watching.log_tail()


def test_task_for_an_unplugged_phone_waits_until_it_is_back(fleet: Fleet, at_fleet: Workplace) -> None:
    phone = fleet.phones[1]
    before = orders(phone)
    fleet.phone_program.process.kill()
    fleet.phone_program.process.wait()
    eventually(
        lambda: at_fleet.devices()[phone.name].state in {"PHONE_OFFLINE", "OFFLINE"},
        within_s=BACK_S,
        what="the device is not online",
    )
    started = at_fleet.droidfleet("task", "run", ORDER, "--device", phone.name, "--no-watch", "-o", "json")
    assert (started.code, f"{phone.name}: " in started.err) == (0, True), started
    start_phones(at_fleet.parts, fleet.phones, env=fleet.env)
    run_id = json.loads(started.out)["runId"]
    watched = at_fleet.droidfleet("execution", "watch", "--run", run_id)
    assert (watched.code, orders(phone)) == (0, before + 1), watched


def serve(place: Workplace, ports: Sequence[int]) -> Part:
    """A controller whose ports stay the same over its restarts."""
    api, http, broker = ports
    data = place.folder / "data"
    part = place.start(
        "controller",
        "droidfleet",
        *("serve", "--data", str(data), "--listen", f"127.0.0.1:{api}", "--http", f"127.0.0.1:{http}"),
        *("--broker-listen", f"127.0.0.1:{broker}"),
    )
    part.wait_until(lambda: _serves(data / "serve.json", part.process.pid), within_s=BACK_S, what="serving")
    return part


def _serves(file: Path, pid: int) -> bool:
    return file.exists() and json.loads(file.read_text())["pid"] == pid


def test_controller_killed_in_mid_task_takes_up_where_it_was(workplace: Workplace) -> None:
    *ports, phone_port = workplace.parts.keep_ports(4)
    place = Workplace(workplace.folder, {**workplace.env, "DROIDFLEET_API": f"127.0.0.1:{ports[0]}"}, workplace.parts)
    phone = Phone(1, phone_port, place.folder / "effects.jsonl", twin=False)
    controller = serve(place, ports)
    start_phones(place.parts, [phone], env=place.env)
    named = f"{phone.serial}={phone.name}"
    place.start("agents", "droidfleet-agent", "supervise", "--nats", f"nats://127.0.0.1:{ports[2]}", "--name", named)
    eventually(lambda: "phone-01" in place.devices(), within_s=BACK_S, what="the agent is heard")

    _, run = order_under_way(place, phone)
    controller.process.kill()
    controller.process.wait()
    serve(place, ports)
    watched = place.droidfleet("execution", "watch", "--run", run)
    assert (watched.code, orders(phone)) == (0, 1), watched


def test_ctrl_c_stops_the_watching_and_not_the_execution(fleet: Fleet, at_fleet: Workplace) -> None:
    phone = fleet.phones[0]
    before = orders(phone)
    watching, _ = order_under_way(at_fleet, phone)
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(END_S) == 130
    said = watching.log_tail()
    assert "The executions go on. Watch them: droidfleet execution watch --run " in said, said
    assert "Traceback" not in said, said
    watched = at_fleet.droidfleet("execution", "watch", "--run", said.split()[-1])
    assert (watched.code, orders(phone)) == (0, before + 1), watched
