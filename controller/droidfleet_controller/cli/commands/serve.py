"""`droidfleet serve`: the controller on this machine. Reads settings and starts it; everything else is `app`'s."""

from __future__ import annotations

import asyncio
import signal
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from droidfleet_shared.exit_codes import ExitCode


class LogLevel(StrEnum):
    """How bad an event must be to be logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _env(name: str) -> str:
    """What the help says of a setting's environment variable; `load_settings` is what reads it."""
    return f"[dim]\\[env var: DROIDFLEET_{name}][/dim]"


def serve(
    *,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help=f"Of the gRPC API; default 127.0.0.1:7400. {_env('LISTEN')}"),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help=f"Of /metrics, /healthz, /readyz; default 127.0.0.1:7401. {_env('HTTP')}"
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help=f"Database and broker; default ~/.local/share/droidfleet. {_env('DATA')}"),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(metavar="URL", help=f"A database of your own; default SQLite in --data. {_env('DATABASE')}"),
    ] = None,
    nats: Annotated[
        str | None,
        typer.Option(metavar="URL", help=f"A NATS server of your own; default an embedded one. {_env('NATS')}"),
    ] = None,
    broker_listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help=f"Of the embedded broker; default 127.0.0.1:7422. {_env('BROKER_LISTEN')}"
        ),
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option(envvar="DROIDFLEET_LOG_LEVEL", help="How much it says of what it does.")
    ] = LogLevel.INFO,
    heartbeat_s: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help=f"How often agents report; default 10. {_env('HEARTBEAT_S')}"),
    ] = None,
    effect_words: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"More words for effects that cannot be undone. {_env('EFFECT_WORDS')}"),
    ] = None,
    model_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help=f"Of an OpenAI-compatible API, for drafts. {_env('MODEL_URL')}"),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help=f"The model there. {_env('MODEL')}")] = None,
    model_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With its key; or set DROIDFLEET_MODEL_KEY to the key."),
    ] = None,
    model_vision: Annotated[
        bool | None,
        typer.Option("--model-vision/--no-model-vision", help=f"Show it pictures. {_env('MODEL_VISION')}"),
    ] = None,
    model_prices: Annotated[
        str | None,
        typer.Option(metavar="IN,OUT", help=f"Money for a million tokens. {_env('MODEL_PRICES')}"),
    ] = None,
    model_currency: Annotated[
        str | None, typer.Option(metavar="CODE", help=f"What money that is; default USD. {_env('MODEL_CURRENCY')}")
    ] = None,
    draft_tokens: Annotated[
        int | None, typer.Option(metavar="N", help=f"That one draft may use; default 400000. {_env('DRAFT_TOKENS')}")
    ] = None,
    draft_turns: Annotated[
        int | None, typer.Option(metavar="N", help=f"That one draft may take; default 60. {_env('DRAFT_TURNS')}")
    ] = None,
    draft_money: Annotated[
        float | None, typer.Option(metavar="AMOUNT", help=f"That one draft may cost. {_env('DRAFT_MONEY')}")
    ] = None,
    drafts: Annotated[
        int | None, typer.Option(metavar="N", help=f"Explored at a time; default 4. {_env('DRAFTS')}")
    ] = None,
    practice_model: Annotated[
        bool | None,
        typer.Option("--practice-model", help=f"Draft by rules, without a language model. {_env('PRACTICE_MODEL')}"),
    ] = None,
) -> None:
    """Run the controller, with a broker of its own, until Ctrl-C or SIGTERM.

    Listens on loopback. Port 0 takes a free port.
    The addresses in use are printed, and written to serve.json in the data folder.
    Every setting can also come from the environment; docs/operations.md has them.

    \b
    Examples:
      droidfleet serve
      droidfleet serve --data /var/lib/droidfleet --nats nats://127.0.0.1:4222
      droidfleet serve --data ./fleet --listen 127.0.0.1:7500
      droidfleet serve --model-url https://api.openai.com/v1 --model gpt-5 --model-key-file ./key
    """
    # These bring the database and the bus, which no other command needs.
    from droidfleet_controller.app import serve as run  # noqa: PLC0415
    from droidfleet_controller.settings import load_settings  # noqa: PLC0415
    from droidfleet_shared.logging import configure_logging  # noqa: PLC0415

    configure_logging(log_level.value)

    settings = load_settings(
        {
            "listen": listen,
            "http": http,
            "data": data,
            "database": database,
            "nats": nats,
            "broker_listen": broker_listen,
            "heartbeat_s": heartbeat_s,
            "effect_words": effect_words,
            "model_url": model_url,
            "model": model,
            "model_key_file": model_key_file,
            "model_vision": model_vision,
            "model_prices": model_prices,
            "model_currency": model_currency,
            "draft_tokens": draft_tokens,
            "draft_turns": draft_turns,
            "draft_money": draft_money,
            "drafts": drafts,
            "practice_model": practice_model,
        }
    )
    if asyncio.run(run(settings)) is signal.SIGINT:
        raise typer.Exit(ExitCode.INTERRUPTED)
