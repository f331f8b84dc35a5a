"""Many tasks on several phones while every part is killed or stopped once: none lost, none done twice, none stuck."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic

import grpc
import psutil
import pytest

from droidfleet.v1 import execution_pb2, execution_pb2_grpc, fleet_pb2, fleet_pb2_grpc
from droidfleet_demo.fleet import listens
from droidfleet_demo.processes import Part
from support.adb import find_adb
from support.workplace import Workplace, eventually

pytestmark = pytest.mark.e2e

PHONES = 3
TASKS = 8
"""For each phone."""

HEARTBEAT_S = "1"
START_S = 45.0
END_S = 90.0
CALL_S = 5.0
STOPPED_S = 2.0
"""Less than three heartbeats: the part is late, and not gone."""

LATENCY = "zero,dump=60,tap=20"
"""Slow enough that each fault meets tasks that run."""

BETWEEN_FAULTS = 3
"""Executions that end between two faults, so that each one meets a fleet at work."""

ENDED = {"SUCCEEDED", "FAILED"}
"""How an execution may end here: done, or cut off with its action in doubt."""

SCENARIO = """
format: 1
name: post
description: One screen on which words are posted.
start: com.example.post
apps:
  - package: com.example.post
    label: Post
    home: main
    variables: {draft: ""}
    screens:
      main:
        activity: .MainActivity
        root:
          type: column
          height: fill
          background: surface
          children:
            - {type: field, name: draft, hint: Draft, bind: draft}
            - {type: button, name: send, text: Send, on_click: [{effect: posted, details: {text: "{{draft}}"}}]}
            - {type: button, name: tick, text: Tick, on_click: [{effect: ticked}]}
"""


def posting(word: str) -> str:
    """A task that posts a word once, with some work around it."""
    ticks = [{"id": f"tick-{number}", "action": "CLICK", "selector": {"text": "Tick"}} for number in range(2)]
    write = {
        "id": "write",
        "action": "INPUT",
        "packageName": "com.example.post",
        "selector": {"hint": "Draft"},
        "value": word,
    }
    send = {"id": "send", "action": "CLICK", "selector": {"text": "Send"}}
    return json.dumps({"schemaVersion": 1, "taskId": "post", "steps": [write, *ticks, send]})


class Wreck:
    """A whole fleet of processes whose parts a test ends one after the other; ports stay over restarts."""

    def __init__(self, place: Workplace) -> None:
        self._folder = place.folder
        self._api, self._http, self._broker, *phones = place.parts.keep_ports(3 + PHONES)
        self._serials = [f"127.0.0.1:{port}" for port in phones]
        self._first = phones[0]
        self._effects = self._folder / "effects.jsonl"
        self._place = Workplace(place.folder, {**place.env, "DROIDFLEET_HEARTBEAT_S": HEARTBEAT_S}, place.parts)
        self._adb_port = int(place.env["ANDROID_ADB_SERVER_PORT"])
        scenario = self._folder / "post.yaml"
        scenario.write_text(SCENARIO)
        self.controller = self._serve()
        self.adb = self._start_adb()
        for number, port in enumerate(phones, start=1):
            place.start(
                f"phone-{number}",
                "droidfleet-phone",
                *("--scenario", str(scenario), "--port", str(port), "--latency", LATENCY),
                *("--effects", str(self._effects)),
            )
        self.agents = self._supervise()
        self.agents.wait_until(lambda: self._online() == PHONES, within_s=START_S, what="all online")

    def _serve(self) -> Part:
        part = self._place.start(
            "controller",
            "droidfleet",
            *("serve", "--data", str(self._folder / "data"), "--listen", f"127.0.0.1:{self._api}"),
            *("--http", f"127.0.0.1:{self._http}", "--broker-listen", f"127.0.0.1:{self._broker}"),
        )
        part.wait_until(lambda: listens(self._api), within_s=START_S, what="serving")
        return part

    def _start_adb(self) -> Part:
        command = [find_adb(), "-P", str(self._adb_port), "nodaemon", "server"]
        return self._place.parts.start("adb", command, env=self._place.env)

    def _supervise(self) -> Part:
        names = [word for name, serial in self._names() for word in ("--name", f"{serial}={name}")]
        return self._place.start(
            "agents",
            "droidfleet-agent",
            *("supervise", "--nats", f"nats://127.0.0.1:{self._broker}", "-o", "json"),
            *("--heartbeat", HEARTBEAT_S, *names),
        )

    def _names(self) -> list[tuple[str, str]]:
        return [(f"phone-{number}", serial) for number, serial in enumerate(self._serials, start=1)]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self._names()]

    def _online(self) -> int:
        fleet = fleet_pb2_grpc.FleetServiceStub(grpc.insecure_channel(f"127.0.0.1:{self._api}"))
        request = fleet_pb2.ListDevicesRequest(states=[fleet_pb2.DEVICE_STATE_ONLINE])
        return len(fleet.ListDevices(request, timeout=CALL_S).devices)

    def posted(self) -> Counter[str]:
        """How often each word reached the outside world."""
        effects = [json.loads(line) for line in self._effects.read_text().splitlines()]
        return Counter(effect["details"]["text"] for effect in effects if effect["kind"] == "posted")

    def calls(self) -> execution_pb2_grpc.ExecutionServiceStub:
        """The API; a channel of its own, since controllers come and go."""
        return execution_pb2_grpc.ExecutionServiceStub(grpc.insecure_channel(f"127.0.0.1:{self._api}"))

    def run(self, word: str, name: str) -> str:
        """Starts a task; the execution's id."""
        request = execution_pb2.RunTaskRequest(document_json=posting(word), devices=[name], request_id=word)
        return self.calls().RunTask(request, timeout=CALL_S).executions[0].execution_id

    def states(self) -> dict[str, str]:
        """Every execution's state."""
        listed = self.calls().ListExecutions(execution_pb2.ListExecutionsRequest(page_size=500), timeout=CALL_S)
        return {
            each.execution_id: execution_pb2.ExecutionState.Name(each.state).removeprefix("EXECUTION_STATE_")
            for each in listed.executions
        }

    # Faults.

    def kill_broker(self) -> None:
        children = psutil.Process(self.controller.process.pid).children()
        next(child for child in children if child.name() == "nats-server").kill()

    def kill_controller(self) -> None:
        self.controller.process.kill()
        self.controller.process.wait()
        self.controller = self._serve()

    def kill_adb(self) -> None:
        self.adb.process.kill()
        self.adb.process.wait()
        self.adb = self._start_adb()

    def kill_an_agent(self) -> None:
        psutil.Process(self.agents.process.pid).children()[0].kill()

    def kill_the_supervisor(self) -> None:
        self.agents.process.kill()
        self.agents.process.wait()
        self.agents = self._supervise()

    def stop_an_agent_for_a_while(self) -> None:
        agent = psutil.Process(self.agents.process.pid).children()[-1]
        agent.send_signal(signal.SIGSTOP)
        since = monotonic()
        eventually(lambda: monotonic() - since > STOPPED_S, within_s=2 * STOPPED_S, what="it stood still")
        agent.send_signal(signal.SIGCONT)


def faults(wreck: Wreck) -> Sequence[Callable[[], None]]:
    return (
        wreck.kill_broker,
        wreck.kill_an_agent,
        wreck.kill_adb,
        wreck.kill_controller,
        wreck.stop_an_agent_for_a_while,
        wreck.kill_the_supervisor,
    )


def test_nothing_is_lost_done_twice_or_stuck_while_every_part_dies_once(workplace: Workplace) -> None:
    wreck = Wreck(workplace)
    words = {wreck.run(f"{name}-{number}", name): f"{name}-{number}" for number in range(TASKS) for name in wreck.names}

    def ended(at_least: int) -> bool:
        return sum(state in ENDED for state in wreck.states().values()) >= at_least

    for number, fault in enumerate(faults(wreck)):
        some = number * BETWEEN_FAULTS
        eventually(partial(ended, some), within_s=END_S, what=f"{some} executions ended")
        fault()
    eventually(partial(ended, len(words)), within_s=END_S, what="every execution ended")

    states, posted = wreck.states(), wreck.posted()
    assert states.keys() == words.keys()
    assert {word: count for word, count in posted.items() if count > 1} == {}
    succeeded = {word for execution_id, word in words.items() if states[execution_id] == "SUCCEEDED"}
    assert succeeded <= posted.keys()
    assert len(succeeded) >= len(words) / 2
