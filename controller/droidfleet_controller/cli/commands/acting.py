"""`droidfleet device tap`, `type` and the like: one step of the protocol on one phone, now.

Each command becomes a step, exactly as it would stand in a task, and the phone's agent runs it under a lease: the
session that was named, or one that is opened for this step alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet_controller.cli import documents
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_device
from droidfleet_controller.cli.flags import with_flags
from droidfleet_controller.cli.live import LiveDevice, holder, run_step
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit, note, show
from droidfleet_controller.cli.screens import ScreenView, escaped, selector_of
from droidfleet_controller.cli.sources import read_text
from droidfleet_controller.cli.tables import candidates_of_result
from droidfleet_controller.cli.text import cell, duration
from droidfleet_shared.errors import InvalidInputError, PreconditionError
from droidfleet_shared.exit_codes import ExitCode

if TYPE_CHECKING:
    from droidfleet.v1 import execution_pb2

SESSION_ENV = "DROIDFLEET_SESSION"

LONGEST_LEASE_S = 300
"""An agent gives a lease for no longer without being asked again."""

STEP_ID = "now"

Step = Mapping[str, object]
Look = Callable[[], ScreenView]
"""Looks at the phone; most steps need none."""

Plan = Callable[[Look], Step]


class Way(StrEnum):
    """As the protocol's directions, in small letters."""

    UP = "up"
    DOWN = "down"
    LEFT = "left"
    RIGHT = "right"


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The device.", autocompletion=complete_device)]
TargetArgument = Annotated[
    str, typer.Argument(metavar="TARGET", help="The node that is called like this, as `device tree` shows it.")
]
PackageArgument = Annotated[str, typer.Argument(metavar="PACKAGE", help="The app, such as com.android.settings.")]


@dataclass(frozen=True, kw_only=True)
class ActFlags:
    """What every command on a phone has."""

    session: Annotated[
        str, typer.Option("--session", envvar=SESSION_ENV, help="A lease of yours; left out: one for this step alone.")
    ] = ""
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="For the step; left out: the action's default.")
    ] = None
    output: OutputOption = Output.TABLE
    api: ApiOption = DEFAULT_API


@dataclass(frozen=True, kw_only=True)
class TargetFlags:
    """Which node."""

    selector: Annotated[
        str, typer.Option("--selector", metavar="JSON", help='A selector instead of TARGET: \'{"resourceId": "buy"}\'.')
    ] = ""


def add_to(app: typer.Typer) -> None:
    """Puts the commands into `droidfleet device`."""
    commands: Mapping[str, Callable[..., None]] = {
        "lease": lease,
        "release": release,
        "tap": tap,
        "long-press": long_press,
        "type": type_text,
        "press": press,
        "back": back,
        "scroll": scroll,
        "swipe": swipe,
        "open": open_app,
        "stop": stop_app,
        "step": step,
    }
    for name, command in commands.items():
        app.command(name)(command)


# Leases.


def lease(
    name: NameArgument,
    *,
    ttl: Annotated[
        int,
        typer.Option("--ttl", min=1, max=LONGEST_LEASE_S, metavar="SECONDS", help="How long it holds after each step."),
    ] = 60,
    hold: Annotated[bool, typer.Option("--hold", help="Keep it until Ctrl-C.")] = False,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Take a phone for yourself, and print the lease for the commands that follow.

    While it holds, no execution begins on the device. Each step renews it; it ends by itself, or with `device release`.

    \b
    Examples:
      export DROIDFLEET_SESSION=$(droidfleet device lease phone-01 --ttl 120)
      droidfleet device lease phone-01 --hold
    """
    with ControllerClient(api) as client:
        if hold:
            with LiveDevice(client, name, doing="leased") as live, suppress(KeyboardInterrupt):
                sys.stdout.write(f"{live.session_id}\n")
                sys.stdout.flush()
                note(f"{name} is yours until Ctrl-C")
                while True:
                    time.sleep(3_600)
            return
        session_id = client.open_session(name, holder=holder("leased"), ttl=timedelta(seconds=ttl))
    sys.stdout.write(f"{session_id}\n")
    note(f"{name} is yours for {ttl} s after each step; droidfleet device release {name} gives it back")


def release(
    name: NameArgument,
    *,
    session: Annotated[str, typer.Option("--session", envvar=SESSION_ENV, help="The lease.")] = "",
    api: ApiOption = DEFAULT_API,
) -> None:
    """Give a lease back. A step that is under way is stopped.

    \b
    Examples:
      droidfleet device release phone-01 --session 5f2a9c...
    """
    if not session:
        raise InvalidInputError(
            "BAD_ARGUMENTS", "which lease? Name it with --session.", hint=f"`device lease` prints it; or {SESSION_ENV}."
        )
    with ControllerClient(api) as client:
        client.close_session(name, session)
    note(f"{name} is free")


# Steps.


@with_flags(target=TargetFlags, act=ActFlags)
def tap(name: NameArgument, text: TargetArgument = "", *, target: TargetFlags, act: ActFlags) -> None:
    """Tap a node.

    \b
    Examples:
      droidfleet device tap phone-01 "Add to cart"
      droidfleet device tap phone-01 --selector '{"text": "Delete", "rightOf": {"text": "Green tea"}}'
    """
    _act(name, act, lambda look: {"action": "CLICK", "selector": _selector(look, text, target)})


@with_flags(target=TargetFlags, act=ActFlags)
def long_press(name: NameArgument, text: TargetArgument = "", *, target: TargetFlags, act: ActFlags) -> None:
    """Press a node for a while.

    \b
    Examples:
      droidfleet device long-press phone-01 "Green tea"
    """
    _act(name, act, lambda look: {"action": "LONG_CLICK", "selector": _selector(look, text, target)})


@with_flags(target=TargetFlags, act=ActFlags)
def type_text(
    name: NameArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="What the field shall hold.")],
    text: TargetArgument = "",
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Append to what the field holds.")] = False,
    submit: Annotated[bool, typer.Option("--submit", help="Press Enter afterwards.")] = False,
    target: TargetFlags,
    act: ActFlags,
) -> None:
    """Type a text into a field, in place of what it holds, and read it back.

    The value stands in the list of processes and in your shell's history: no place for a password.

    \b
    Examples:
      droidfleet device type phone-01 "tea pot" "Search products" --submit
    """
    fields = {"value": escaped(value), "clear": not keep, "submit": submit}
    _act(name, act, lambda look: {"action": "INPUT", "selector": _selector(look, text, target), **fields})


@with_flags(act=ActFlags)
def press(
    name: NameArgument,
    key: Annotated[str, typer.Argument(metavar="KEY", help="HOME, RECENTS, ENTER, SEARCH, VOLUME_UP, ...")],
    *,
    act: ActFlags,
) -> None:
    """Press a key.

    \b
    Examples:
      droidfleet device press phone-01 HOME
    """
    _act(name, act, lambda _: {"action": "KEY", "key": key.upper()})


@with_flags(act=ActFlags)
def back(name: NameArgument, *, act: ActFlags) -> None:
    """Press Back.

    \b
    Examples:
      droidfleet device back phone-01
    """
    _act(name, act, lambda _: {"action": "BACK"})


@with_flags(target=TargetFlags, act=ActFlags)
def scroll(
    name: NameArgument,
    direction: Annotated[Way, typer.Argument(metavar="DIRECTION", help="Where further content is.")] = Way.DOWN,
    *,
    until: Annotated[str, typer.Option("--until", metavar="JSON", help="A selector: stop when it is visible.")] = "",
    most: Annotated[int, typer.Option("--most", metavar="N", help="At most so many scrolls.")] = 1,
    target: TargetFlags,
    act: ActFlags,
) -> None:
    """Scroll once, or until something is seen. --selector names the container; left out: the largest.

    \b
    Examples:
      droidfleet device scroll phone-01
      droidfleet device scroll phone-01 down --until '{"text": "Green tea"}' --most 20
    """
    fields: dict[str, object] = {"action": "SCROLL", "direction": direction.name, "maxScrolls": most}
    if until:
        fields["until"] = _json(until, "--until")
    _act(name, act, lambda _: {**fields, **_area(target)})


@with_flags(target=TargetFlags, act=ActFlags)
def swipe(
    name: NameArgument,
    direction: Annotated[Way, typer.Argument(metavar="DIRECTION", help="Where the finger moves to.")],
    *,
    distance: Annotated[int, typer.Option("--distance", metavar="PERCENT", help="Of the area, 10 to 90.")] = 60,
    target: TargetFlags,
    act: ActFlags,
) -> None:
    """Swipe over the display, or over the node that --selector names.

    \b
    Examples:
      droidfleet device swipe phone-01 left
    """
    fields = {"action": "SWIPE", "direction": direction.name, "distancePercent": distance}
    _act(name, act, lambda _: {**fields, **_area(target)})


@with_flags(act=ActFlags)
def open_app(
    name: NameArgument,
    package: PackageArgument,
    *,
    afresh: Annotated[bool, typer.Option("--afresh", help="Stop it before.")] = False,
    act: ActFlags,
) -> None:
    """Open an app, and wait until it is in front.

    \b
    Examples:
      droidfleet device open phone-01 com.android.settings
    """
    _act(name, act, lambda _: {"action": "OPEN", "packageName": package, "stopFirst": afresh})


@with_flags(act=ActFlags)
def stop_app(name: NameArgument, package: PackageArgument, *, act: ActFlags) -> None:
    """Stop an app.

    \b
    Examples:
      droidfleet device stop phone-01 com.android.settings
    """
    _act(name, act, lambda _: {"action": "STOP_APP", "packageName": package})


@with_flags(act=ActFlags)
def step(
    name: NameArgument,
    document: Annotated[str, typer.Argument(metavar="STEP", help="A step as JSON, a file with one, or - for stdin.")],
    *,
    act: ActFlags,
) -> None:
    """Run any step of the protocol, as it stands in a task.

    \b
    Examples:
      droidfleet device step phone-01 '{"action": "EXTRACT_TEXT", "selector": {"resourceId": "total"},
        "outputField": "total"}'
      droidfleet device step phone-01 step.json
    """
    given = _json(document if document.lstrip().startswith("{") else read_text(document), "STEP")
    _act(name, act, lambda _: given)


# What they share.


def _act(name: str, act: ActFlags, plan: Plan) -> None:
    """Looks, makes the step, runs it once, and tells how it went; a step that failed ends with exit code 1."""
    with ControllerClient(act.api) as client:
        if act.session:
            planned = _planned(plan, client, name, act)
            result = run_step(client, name, act.session, planned)
        else:
            with LiveDevice(client, name, doing="one step") as live:
                # Under the lease already: nothing of ours moves the screen between this look and the step's own.
                planned = _planned(plan, client, name, act)
                result = live.run(planned)
    _tell(planned, result, act.output)
    if not result.successful:
        raise typer.Exit(ExitCode.FAILED)


def _planned(plan: Plan, client: ControllerClient, name: str, act: ActFlags) -> Step:
    planned = {"id": STEP_ID, **plan(lambda: ScreenView(client.tree(name)))}
    if act.timeout is not None:
        planned["timeoutMs"] = round(act.timeout * 1000)
    return planned


def _selector(look: Look, text: str, target: TargetFlags) -> object:
    """The selector that was given, or the best one of the node that is called so."""
    if bool(text) == bool(target.selector):
        raise InvalidInputError(
            "BAD_ARGUMENTS",
            "which node? Name it either by TARGET or by --selector.",
            hint="See what there is: droidfleet device tree NAME",
        )
    if target.selector:
        return _json(target.selector, "--selector")
    seen = look().one(text)
    if seen.best is None:
        raise PreconditionError(
            "NODE_UNNAMED",
            f"no selector names {seen.named()} alone.",
            hint=f"See why: droidfleet device pick NAME --text {json.dumps(text, ensure_ascii=False)}",
        )
    return selector_of(escaped(seen.best.selector_json))


def _area(target: TargetFlags) -> Step:
    return {"selector": _json(target.selector, "--selector")} if target.selector else {}


def _json(text: str, what: str) -> Step:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInputError("BAD_JSON", f"{what} is no JSON: {error}.") from error
    if not isinstance(found, dict):
        raise InvalidInputError("BAD_JSON", f'{what} is an object, such as {{"text": "OK"}}.')
    return found


def _tell(planned: Step, result: execution_pb2.TaskResult, output: Output) -> None:
    if output is not Output.TABLE:
        emit(documents.result_document(result), output)
        return
    named = next((planned[key] for key in ("selector", "key", "packageName", "direction") if key in planned), "")
    what = named if isinstance(named, str) else json.dumps(named, ensure_ascii=False)
    took = duration(documents.milliseconds(result.duration) / 1000)
    told = f"{result.code}" + (f" ({result.detail})" if result.detail else "")
    show(cell(" ".join(filter(None, [str(planned.get("action", "")), what, told, took]))))
    if result.outputs_json not in ("", "{}"):
        show(cell(result.outputs_json))
    if not result.successful:
        note(f"{result.code}: {result.message}")
        for candidate in candidates_of_result(result):
            note(f"  {candidate}")
