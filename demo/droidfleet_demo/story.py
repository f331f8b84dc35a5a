"""What the demo shows, in order: start, devices, save, run, results, checks, a rollout in waves, a draft, and how to go
on."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from droidfleet_demo.checks import Check, Document, Report, check, orders
from droidfleet_demo.drafting import drafted
from droidfleet_demo.fleet import BIN, PLAIN_PHONES, TWIN_PHONES, Fleet, start_fleet
from droidfleet_demo.processes import POLL_S, Parts

PHONES = PLAIN_PHONES + TWIN_PHONES
CHECKOUT = Path(__file__).parents[2]
TASK_ID = "shop-order"
TASK_FILE = "examples/shop-order.json"
GROUP = "shop-floor"

RUN_S = 60.0
"""For the task on all phones, which takes some seconds."""

NEXT_STEPS = """
It is all still running. Go on by hand in another terminal:

  cd {checkout}
  export PATH="{bin}:$PATH" DROIDFLEET_API={api} ANDROID_ADB_SERVER_PORT={adb_port}
  droidfleet devices
  droidfleet execution list
  droidfleet execution show {execution}
  droidfleet rollout list
  droidfleet group preview {group}
  droidfleet task run {task} --device phone-01
  droidfleet draft start 'Open Harbour Goods and tap "Cart".' --device phone-01
  droidfleet events --follow
  {adb} devices
  curl http://{http}/metrics

Data and logs are in {folder}. Ctrl-C here ends everything and removes them."""


def tell(folder: Path, parts: Parts, *, keep: bool) -> bool:
    """Runs the whole demo; whether all was as expected. With ``keep`` it stays until Ctrl-C.

    Raises:
        PartFailedError: a part did not start or did not live.
    """
    started = time.monotonic()
    say(f"Starting a controller with its broker, an adb server, and {PHONES} virtual phones with their agents ...")
    fleet = start_fleet(folder, parts)
    say(f"{PHONES} devices are online after {time.monotonic() - started:.1f} s.")
    show(fleet, "devices")
    show(fleet, "task", "save", TASK_FILE)
    devices = [word for phone in fleet.phones for word in ("--device", phone.name)]
    exit_code = show(fleet, "task", "run", TASK_ID, *devices, "--watch")
    parts.require_all_alive()

    (listed,) = fleet.ask("execution", "list", "--task", TASK_ID)
    run_id = _first(listed["executions"])["runId"]
    ended = {str(item["executionId"]): item for item in fleet.ask("execution", "watch", "--run", str(run_id))}
    reports = sorted((Report.of(item) for item in ended.values()), key=lambda report: report.device)
    effects = {phone.name: phone.effects() for phone in fleet.phones}
    checks = [
        Check("one execution on each device", len(reports) == PHONES, f"{len(reports)} executions"),
        Check("the failure shows in the exit code", exit_code == 1, f"exit code {exit_code}"),
        *check(reports, effects, twins={phone.name for phone in fleet.phones if phone.twin}),
    ]
    say("\nWhat was reported against what the phones felt:")
    _say_all(checks)
    checks += _in_waves(fleet, before=effects)
    say("\nA task that nobody wrote. The practice model drafts it from a sentence: rules, no language model.")
    of_draft = drafted(fleet, partial(show, fleet))
    say("\nWhat became of the sentence:")
    _say_all(of_draft)
    checks += of_draft
    held = all(item.held for item in checks)
    say(f"\n{'All as expected' if held else 'NOT as expected'}, after {time.monotonic() - started:.1f} s.")
    if keep:
        _wait(fleet, parts, folder, execution=next(iter(ended)))
    else:
        say("Go on by hand: `make demo KEEP=1` leaves it running and says what to try.")
    return held


def _in_waves(fleet: Fleet, *, before: Mapping[str, Sequence[Document]]) -> list[Check]:
    """The same task on a group, first on one phone and then on the rest; ``before``: what the phones felt so far."""
    show(fleet, "group", "create", GROUP, "--query", "android>=13")
    gates = ("--order", "listed", "--wave", "1", "--wave", "rest", "--min-success", "70%")
    exit_code = show(fleet, "rollout", "start", TASK_ID, "--group", GROUP, *gates, "--yes", "--watch")
    (listed,) = fleet.ask("rollout", "list")
    rollout = _first(listed["rollouts"])
    show(fleet, "rollout", "explain", str(rollout["rolloutId"]))
    more = {phone.name: orders(phone.effects()) - orders(before[phone.name]) for phone in fleet.phones}
    wanted = {phone.name: 0 if phone.twin else 1 for phone in fleet.phones}
    checks = [
        Check(
            "the rollout passed both gates",
            (exit_code, rollout["state"]) == (0, "SUCCEEDED"),
            f"exit code {exit_code}, {rollout['state']}",
        ),
        Check("each phone placed exactly the orders that it reported", more == wanted, f"{more}"),
    ]
    say("\nWhat the rollout did to the phones:")
    _say_all(checks)
    return checks


def _say_all(checks: Sequence[Check]) -> None:
    for item in checks:
        say(f"  {'ok    ' if item.held else 'WRONG '}{item.what}" + ("" if item.held else f": {item.seen}"))


def say(text: str) -> None:
    """A line of the story, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def show(fleet: Fleet, *arguments: str) -> int:
    """Runs `droidfleet ARGUMENTS...` before the reader's eyes; gives its exit code."""
    say(f"\n> droidfleet {' '.join(map(_typed, arguments))}")
    return subprocess.run(
        fleet.command(*arguments), env=dict(fleet.env), cwd=CHECKOUT, timeout=RUN_S, check=False
    ).returncode


def _typed(argument: str) -> str:
    """An argument as a person types it: a sentence needs quotes."""
    return shlex.quote(argument) if " " in argument else argument


def _wait(fleet: Fleet, parts: Parts, folder: Path, *, execution: str) -> None:
    say(
        NEXT_STEPS.format(
            checkout=CHECKOUT,
            bin=BIN,
            api=fleet.api,
            adb_port=fleet.env["ANDROID_ADB_SERVER_PORT"],
            execution=execution,
            task=TASK_ID,
            group=GROUP,
            adb=fleet.adb,
            http=fleet.http,
            folder=folder,
        )
    )
    try:
        while True:
            parts.require_all_alive()
            time.sleep(10 * POLL_S)
    except KeyboardInterrupt:
        say("\nStopping everything.")


def _first(items: object) -> dict[str, object]:
    assert isinstance(items, list)
    assert isinstance(items[0], dict)
    return items[0]
