"""The options that say what a rollout is: one set for `rollout plan`, `rollout start` and `schedule create`.

`RolloutFlags` declares them; `document_of` lays them over a document. What they mean together is the controller's to
judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet_controller.cli.completion import complete_device, complete_group
from droidfleet_shared.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from droidfleet_shared.protocol.pointers import Json

REST = "rest"

MAX_SEED = 2**53 - 1
"""The protocol's (a test compares them)."""

_TARGET = "Which phones"
_WAVES = "Waves and gates"
_PACE = "Pace and failures"
_VALUES = "Task and values"


class Order(StrEnum):
    """As `rollouts.spec.Order`, in small letters."""

    HASH = "hash"
    LISTED = "listed"


class OnExceeded(StrEnum):
    """As `rollouts.spec.OnExceeded`, in small letters."""

    PAUSE = "pause"
    CANCEL = "cancel"


class OfflinePolicy(StrEnum):
    """As `rollouts.spec.Offline`, in small letters."""

    WAIT = "wait"
    SKIP = "skip"
    FAIL = "fail"
    SUBSTITUTE = "substitute"


@dataclass(frozen=True, kw_only=True)
class RolloutFlags:
    """What the command line says about a rollout. None, empty or false: nothing."""

    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device", "-d", help="This one; repeatable.", autocompletion=complete_device, rich_help_panel=_TARGET
        ),
    ] = None
    group: Annotated[
        str | None,
        typer.Option("--group", help="Those of a group.", autocompletion=complete_group, rich_help_panel=_TARGET),
    ] = None
    query: Annotated[
        str | None,
        typer.Option(
            "--query", metavar="LABELS", help='Those that match: "site=berlin, android>=13".', rich_help_panel=_TARGET
        ),
    ] = None
    continuous: Annotated[
        bool,
        typer.Option("--continuous", help="Phones that come to match later join it.", rich_help_panel=_TARGET),
    ] = False
    order: Annotated[
        Order | None,
        typer.Option("--order", help="How phones are put into waves (hash).", rich_help_panel=_TARGET),
    ] = None
    offline: Annotated[
        OfflinePolicy | None,
        typer.Option("--offline", help="What to do with phones that are offline (wait).", rich_help_panel=_TARGET),
    ] = None
    wave: Annotated[
        list[str] | None,
        typer.Option("--wave", metavar="5|10%|rest", help="The next wave's size; repeatable.", rich_help_panel=_WAVES),
    ] = None
    min_success: Annotated[
        str | None,
        typer.Option(
            "--min-success", metavar="95%", help="Less, and a wave does not advance (90%).", rich_help_panel=_WAVES
        ),
    ] = None
    max_failures: Annotated[
        str | None,
        typer.Option("--max-failures", metavar="2|5%", help="More, and it stops at once.", rich_help_panel=_WAVES),
    ] = None
    max_failures_of: Annotated[
        list[str] | None,
        typer.Option(
            "--max-failures-of", metavar="CODE=N", help="The same for one code; repeatable.", rich_help_panel=_WAVES
        ),
    ] = None
    on_exceeded: Annotated[
        OnExceeded | None,
        typer.Option("--on-exceeded", help="What too many failures do (pause).", rich_help_panel=_WAVES),
    ] = None
    min_sample: Annotated[
        int | None,
        typer.Option("--min-sample", min=1, metavar="N", help="Fewer results decide nothing.", rich_help_panel=_WAVES),
    ] = None
    soak: Annotated[
        str | None,
        typer.Option(
            "--soak", metavar="10m", help="Time between a wave's last result and the next.", rich_help_panel=_WAVES
        ),
    ] = None
    approve_first: Annotated[
        bool,
        typer.Option("--approve-first", help="The first wave waits for `promote`.", rich_help_panel=_WAVES),
    ] = False
    approve_each: Annotated[
        bool,
        typer.Option("--approve-each", help="Each next wave waits for `promote`.", rich_help_panel=_WAVES),
    ] = False
    dry_run_on: Annotated[
        str | None,
        typer.Option(
            "--dry-run-on",
            metavar="DEVICE",
            help="Run it there once before; it must succeed.",
            autocompletion=complete_device,
            rich_help_panel=_WAVES,
        ),
    ] = None
    max_concurrent: Annotated[
        int | None,
        typer.Option("--max-concurrent", min=1, metavar="N", help="So many at a time.", rich_help_panel=_PACE),
    ] = None
    rate: Annotated[
        int | None,
        typer.Option("--rate", min=1, metavar="N", help="So many begin in a minute.", rich_help_panel=_PACE),
    ] = None
    retry: Annotated[
        int | None,
        typer.Option("--retry", min=1, metavar="N", help="Tries for each phone altogether (1).", rich_help_panel=_PACE),
    ] = None
    retry_delay: Annotated[
        str | None,
        typer.Option("--retry-delay", metavar="30s", help="Before the second try.", rich_help_panel=_PACE),
    ] = None
    start_within: Annotated[
        str | None,
        typer.Option("--start-within", metavar="24h", help="How long a phone may wait.", rich_help_panel=_PACE),
    ] = None
    progress_within: Annotated[
        str | None,
        typer.Option(
            "--progress-within", metavar="24h", help="Without a result for so long it pauses.", rich_help_panel=_PACE
        ),
    ] = None
    priority: Annotated[
        int | None,
        typer.Option("--priority", min=0, max=9, help="On a phone the higher runs first (5).", rich_help_panel=_PACE),
    ] = None
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="NAME=VALUE", help="A value for all phones; repeatable.", rich_help_panel=_VALUES
        ),
    ] = None
    inputs_file: Annotated[
        str | None,
        typer.Option("--inputs-file", metavar="FILE", help="JSON or YAML with values.", rich_help_panel=_VALUES),
    ] = None
    inputs_csv: Annotated[
        str | None,
        typer.Option(
            "--inputs-csv", metavar="FILE", help="Values for single phones, one row each.", rich_help_panel=_VALUES
        ),
    ] = None
    secret: Annotated[
        list[str] | None,
        typer.Option(
            "--secret",
            metavar="NAME",
            help="A secret input: from DROIDFLEET_SECRET_NAME, else asked for; repeatable.",
            rich_help_panel=_VALUES,
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=MAX_SEED, metavar="N", help="Of random choices.", rich_help_panel=_VALUES),
    ] = None
    revision: Annotated[
        int | None,
        typer.Option(
            "--revision", min=0, metavar="N", help="Of the task; 0 means the newest.", rich_help_panel=_VALUES
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option("--name", help="What people call the rollout.", rich_help_panel=_VALUES),
    ] = None


def document_of(document: Mapping[str, Json], flags: RolloutFlags) -> dict[str, Json]:
    """The document with what the options say over it; gates and approvals go into every wave.

    Values (`--input` and the like) are not in it: they need the task.

    Raises:
        InvalidInputError: ``BAD_ARGUMENTS``.
    """
    made = dict(document)
    target = _target(flags)
    if target:
        made["target"] = target
    _set(made, "name", flags.name)
    _set(made, "revision", flags.revision)
    _set(made, "membership", "CONTINUOUS" if flags.continuous else None)
    _set(made, "order", _word(flags.order))
    _set(made, "offline", _word(flags.offline))
    _set(made, "approval", "MANUAL" if flags.approve_first else None)
    _set(made, "dryRun", None if flags.dry_run_on is None else {"device": flags.dry_run_on})
    _set(made, "maxConcurrent", flags.max_concurrent)
    _set(made, "ratePerMinute", flags.rate)
    _set(made, "priority", flags.priority)
    _set(made, "randomSeed", flags.seed)
    _merge(made, "retry", {"maxAttempts": flags.retry, "delay": flags.retry_delay})
    _merge(made, "deadlines", {"startWithin": flags.start_within, "progress": flags.progress_within})
    if flags.wave:
        made["waves"] = _waves(flags.wave)
    gate = _gate(flags)
    if gate:
        waves = made.get("waves", [{}])
        made["waves"] = [_gated(wave, gate) for wave in waves] if isinstance(waves, list) else waves
    return made


def _target(flags: RolloutFlags) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if flags.device:
        found["devices"] = list(flags.device)
    _set(found, "group", flags.group)
    _set(found, "query", flags.query)
    if len(found) > 1:
        raise InvalidInputError("BAD_ARGUMENTS", "name the phones in one way: --device, --group or --query.")
    return found


def _waves(sizes: Sequence[str]) -> list[Json]:
    """The last wave takes the rest, whether it is written or not."""
    if REST in sizes[:-1]:
        raise InvalidInputError("BAD_ARGUMENTS", "--wave rest: only the last wave takes the rest.")
    made: list[Json] = [{"size": int(size) if _is_count(size) else size} for size in sizes if size != REST]
    return [*made, {}]


def _is_count(size: str) -> bool:
    return size.isascii() and size.isdigit() and len(size) <= 6


def _gate(flags: RolloutFlags) -> dict[str, Json]:
    made: dict[str, Json] = {}
    _set(made, "minSuccessPercent", flags.min_success)
    limit = flags.max_failures
    _set(made, "maxFailures", int(limit) if limit is not None and _is_count(limit) else limit)
    _set(made, "onExceeded", _word(flags.on_exceeded))
    _set(made, "minSample", flags.min_sample)
    _set(made, "soak", flags.soak)
    _set(made, "approval", "MANUAL" if flags.approve_each else None)
    if flags.max_failures_of:
        made["maxFailuresByCode"] = dict(_code_limit(pair) for pair in flags.max_failures_of)
    return made


def _code_limit(pair: str) -> tuple[str, Json]:
    code, equals, count = pair.partition("=")
    if not (code and equals and _is_count(count)):
        raise InvalidInputError(
            "BAD_ARGUMENTS",
            f"--max-failures-of {pair!r} is not of the form CODE=N.",
            hint="For example --max-failures-of OUTCOME_UNKNOWN=0.",
        )
    return code, int(count)


def _gated(wave: Json, gate: Mapping[str, Json]) -> Json:
    if not isinstance(wave, dict):
        return wave
    before = wave.get("gate", {})
    return {**wave, "gate": {**before, **gate}} if isinstance(before, dict) else wave


def _set(document: dict[str, Json], name: str, value: Json) -> None:
    if value is not None:
        document[name] = value


def _merge(document: dict[str, Json], name: str, values: Mapping[str, Json]) -> None:
    before = document.get(name)
    merged: dict[str, Json] = dict(before) if isinstance(before, dict) else {}
    merged |= {key: value for key, value in values.items() if value is not None}
    if merged:
        document[name] = merged


def _word(choice: StrEnum | None) -> str | None:
    return None if choice is None else choice.name
