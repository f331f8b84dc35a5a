"""The restore drill: the database is lost in mid-flight, a backup is put back, and the phones' own effects judge it.

What the backup knows as waiting and a phone has done since must not be done again; what runs must not be broken off.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from droidfleet.v1 import execution_pb2
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_demo.checks import ORDER_PLACED
from droidfleet_demo.fleet import Phone, start_phones
from droidfleet_demo.processes import Part
from droidfleet_shared.errors import UnavailableError
from support.workplace import CHECKOUT, Workplace, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ORDER = str(CHECKOUT / "examples" / "shop-order.json")
START_S = 45.0
ORDER_S = 60.0
ORDERS = 8
"""One runs, three wait at the agent, the others in the controller."""


@dataclass
class Drill:
    """A controller that can be killed and started again on its ports, one phone, and its agent."""

    place: Workplace
    phone: Phone
    ports: tuple[int, int, int]
    controller: Part

    @property
    def data(self) -> Path:
        return self.place.folder / "data"

    @property
    def backup(self) -> Path:
        return self.place.folder / "fleet.backup"

    def orders(self) -> int:
        """How many orders the phone has felt."""
        return sum(1 for effect in self.phone.effects() if effect["kind"] == ORDER_PLACED)

    def order(self) -> str:
        """Asks for an order; the execution's id. By the API: a program for each call takes as long as an order does."""
        with ControllerClient(self.place.env["DROIDFLEET_API"]) as client:
            answer = client.run_task(Path(ORDER).read_text(), devices=[self.phone.name], request_id=str(uuid4()))
        return answer.executions[0].execution_id

    def states(self) -> dict[str, str]:
        """The executions' states, by id; empty while the controller does not answer."""
        try:
            with ControllerClient(self.place.env["DROIDFLEET_API"]) as client:
                found = list(client.executions(limit=100))
        except UnavailableError:
            return {}
        return {each.execution_id: _word(each.state) for each in found}

    def until(self, execution_id: str, state: str) -> None:
        eventually(
            lambda: self.states().get(execution_id) == state, within_s=ORDER_S * ORDERS, what=f"{execution_id} {state}"
        )

    def back_up(self) -> None:
        """In mid-flight: one runs, others wait."""
        eventually(lambda: "RUNNING" in self.states().values(), within_s=ORDER_S, what="one runs")
        ran = self.place.droidfleet("admin", "backup", str(self.backup), "--data", str(self.data))
        assert ran.code == 0, ran
        assert len(LIVE & set(self.states().values())) > 1, "too late: nothing waits any more"

    def lose(self, *names: str) -> None:
        """The controller is killed, and files of its data folder are lost; with the broker's, the broker as well."""
        children = psutil.Process(self.controller.process.pid).children() if "nats" in names else []
        self.controller.process.kill()
        for broker in children:
            broker.kill()
        self.controller.process.wait()
        for name in names:
            lost = self.data / name
            if lost.is_dir():
                shutil.rmtree(lost)
            else:
                lost.unlink(missing_ok=True)

    def put_back(self) -> dict[str, object]:
        """Restores the backup and starts the controller."""
        ran = self.place.droidfleet("admin", "restore", str(self.backup), "--data", str(self.data), "-o", "json")
        assert ran.code == 0, ran
        self.controller = serve(self.place, self.ports)
        said: dict[str, object] = json.loads(ran.out)
        return said


def _word(state: execution_pb2.ExecutionState.ValueType) -> str:
    return execution_pb2.ExecutionState.Name(state).removeprefix("EXECUTION_STATE_")


def serve(place: Workplace, ports: tuple[int, int, int]) -> Part:
    api, http, broker = ports
    serving = place.folder / "data" / "serve.json"
    serving.unlink(missing_ok=True)
    part = place.start(
        "controller",
        "droidfleet",
        *("serve", "--data", str(place.folder / "data")),
        *("--listen", f"127.0.0.1:{api}", "--http", f"127.0.0.1:{http}", "--broker-listen", f"127.0.0.1:{broker}"),
    )
    part.wait_until(serving.exists, within_s=START_S, what="serving")
    return part


@pytest.fixture
def drill(workplace: Workplace) -> Drill:
    api, http, broker, phone_port = workplace.parts.keep_ports(4)
    place = Workplace(workplace.folder, {**workplace.env, "DROIDFLEET_API": f"127.0.0.1:{api}"}, workplace.parts)
    phone = Phone(1, phone_port, place.folder / "effects.jsonl", twin=False)
    ports = (api, http, broker)
    controller = serve(place, ports)
    start_phones(place.parts, [phone], env=place.env)
    place.start(
        "agents",
        "droidfleet-agent",
        *("supervise", "--nats", f"nats://127.0.0.1:{broker}", "--name", f"{phone.serial}={phone.name}"),
    )
    eventually(lambda: phone.name in place.devices(), within_s=START_S, what="the agent is heard")
    return Drill(place, phone, ports, controller)


LIVE = {"QUEUED", "ASSIGNED", "ACCEPTED", "RUNNING"}
DATABASE = ("droidfleet.db", "droidfleet.db-wal", "droidfleet.db-shm")


@pytest.mark.parametrize("lost", [DATABASE, (*DATABASE, "nats")], ids=["the database", "the database and the broker"])
def test_what_was_done_after_the_backup_is_not_done_again(drill: Drill, lost: tuple[str, ...]) -> None:
    ids = [drill.order() for _ in range(ORDERS)]
    drill.back_up()
    drill.until(ids[-1], "SUCCEEDED")
    assert drill.orders() == ORDERS

    drill.lose(*lost)
    drill.put_back()
    fresh = drill.order()
    drill.until(fresh, "SUCCEEDED")
    assert drill.orders() == ORDERS + 1
    states = drill.states()
    if "nats" in lost:
        # Recorded once, so the agent keeps none of them; nobody can know, and nobody does them again.
        assert "LOST" in {states[each] for each in ids}
    else:
        for each in ids:
            drill.until(each, "SUCCEEDED")
    assert drill.orders() == ORDERS + 1


def test_what_runs_when_the_database_is_lost_is_finished_and_what_waits_is_left(drill: Drill) -> None:
    ids = [drill.order() for _ in range(ORDERS)]
    drill.back_up()
    drill.lose(*DATABASE)
    drill.put_back()

    def accounted_for() -> bool:
        states = drill.states()
        if not states or LIVE & set(states.values()):
            return False
        succeeded = [each for each in ids if states[each] == "SUCCEEDED"]
        # One may have been stopped after it had placed its order: the agent began it before it heard of the restore.
        stopped = [each for each in ids if states[each] not in {"SUCCEEDED", "LOST"}]
        return bool(succeeded) and len(succeeded) <= drill.orders() <= len(succeeded) + len(stopped)

    # What is LOST by the restore becomes what really happened when the broker's events are read again.
    eventually(accounted_for, within_s=ORDER_S, what="all have ended, and every order is somebody's")
