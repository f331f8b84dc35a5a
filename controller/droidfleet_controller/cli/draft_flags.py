"""The options of a draft, and the brief that they make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet_controller.cli.completion import complete_device, complete_group
from droidfleet_shared.errors import InvalidInputError

if TYPE_CHECKING:
    from droidfleet_shared.protocol.pointers import Json


class Language(StrEnum):
    """Of prompts, notes and summary."""

    EN = "en"
    ZH = "zh"


@dataclass(frozen=True, kw_only=True)
class BriefFlags:
    """What a person sets beforehand; each goes over what the model proposes."""

    device: Annotated[
        str,
        typer.Option("--device", "-d", metavar="NAME", help="The phone to explore.", autocompletion=complete_device),
    ]
    name: Annotated[str, typer.Option(metavar="TASK_ID", help="The task's id.")] = ""
    target: Annotated[
        str, typer.Option("--target", metavar="DEVICE", help="The phone it is for.", autocompletion=complete_device)
    ] = ""
    group: Annotated[str, typer.Option(metavar="GROUP", help="The group it is for.", autocompletion=complete_group)] = (
        ""
    )
    all_phones: Annotated[bool, typer.Option("--all", help="It is for all phones.")] = False
    once: Annotated[str, typer.Option(metavar="TIME", help="Once, at a local time: 2027-03-28T02:30.")] = ""
    cron: Annotated[str, typer.Option(metavar="EXPRESSION", help='Again and again: "0 8 * * *".')] = ""
    window: Annotated[str, typer.Option(metavar="START,STOP", help='Between two times: "0 22 * * *,0 6 * * *".')] = ""
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="Of these times, such as Europe/Berlin.")] = "UTC"
    retry: Annotated[
        int | None, typer.Option(min=1, max=10, metavar="N", help="How often a phone tries, altogether.")
    ] = None
    max_duration: Annotated[
        float | None, typer.Option(min=1, max=86_400, metavar="SECONDS", help="How long the task may take.")
    ] = None
    language: Annotated[Language, typer.Option(help="Of prompts, notes and summary.")] = Language.EN
    allow_points: Annotated[
        bool, typer.Option("--allow-points", help="Points of the display may be proposed, which nothing proves.")
    ] = False
    max_tokens: Annotated[
        int | None, typer.Option(min=1_000, metavar="N", help="Tokens it may use; at most what the controller allows.")
    ] = None


def brief_of(description: str, flags: BriefFlags) -> dict[str, Json]:
    """The brief as a document.

    Raises:
        InvalidInputError: ``BAD_ARGUMENTS``: two targets, or two kinds of times.
    """
    settings: dict[str, Json] = {"language": flags.language.value}
    if flags.name:
        settings["name"] = flags.name
    targets: dict[str, Json] = {
        **({"device": flags.target} if flags.target else {}),
        **({"group": flags.group} if flags.group else {}),
        **({"all": True} if flags.all_phones else {}),
    }
    if targets:
        settings["target"] = _one(targets, "--target, --group and --all")
    times: dict[str, Json] = {
        **({"once": flags.once} if flags.once else {}),
        **({"cron": flags.cron} if flags.cron else {}),
        **({"window": _window(flags.window)} if flags.window else {}),
    }
    if times:
        settings["schedule"] = {**_one(times, "--once, --cron and --window"), "timeZone": flags.time_zone}
    if flags.retry is not None:
        settings["retry"] = {"maxAttempts": flags.retry}
    if flags.max_duration is not None:
        settings["maxDurationMs"] = round(flags.max_duration * 1000)
    if flags.allow_points:
        settings["allowPoints"] = True
    if flags.max_tokens is not None:
        settings["maxTokens"] = flags.max_tokens
    return {"description": description, "device": flags.device, "settings": settings}


def _one(given: dict[str, Json], what: str) -> dict[str, Json]:
    if len(given) > 1:
        raise InvalidInputError("BAD_ARGUMENTS", f"{what} exclude each other.", hint="Give one of them.")
    return given


def _window(text: str) -> dict[str, Json]:
    start, comma, stop = text.partition(",")
    if not comma:
        raise InvalidInputError(
            "BAD_ARGUMENTS",
            "--window takes two times with a comma between them.",
            hint='As in --window "0 22 * * *,0 6 * * *".',
        )
    return {"start": start.strip(), "stop": stop.strip()}
