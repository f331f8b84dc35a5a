"""The model and the bounds of drafts that the settings of a controller ask for."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import structlog

from droidfleet_controller.drafts.settings import DraftBounds, ModelFacts
from droidfleet_controller.practice import PracticeServer
from droidfleet_controller.settings import ServeSettings
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.model.port import Model
from droidfleet_designer.model.settings import ModelSettings
from droidfleet_designer.practice.completions import MODEL as PRACTICE_MODEL
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import InvalidInputError, PreconditionError

log = structlog.get_logger(__name__)

MAX_KEY_BYTES = 10_000
"""Of a file with a key: more is no key."""


def draft_bounds(settings: ServeSettings) -> DraftBounds:
    """How much is explored, and how far."""
    limits = Limits(
        max_turns=settings.draft_turns,
        max_tokens=settings.draft_tokens,
        max_money=settings.draft_money,
        prices=settings.prices,
        currency=settings.model_currency,
    )
    return DraftBounds(limits=limits, exploring=settings.drafts)


async def opened_model(
    settings: ServeSettings, stack: AsyncExitStack, *, clock: Clock
) -> tuple[Model, ModelFacts] | tuple[None, None]:
    """The model and how people are told of it; ``stack`` closes it. None: there is none.

    Raises:
        PreconditionError: ``MODEL_LIBRARY_MISSING``.
        InvalidInputError: ``BAD_SETTING``: the key's file cannot be read, the URL cannot be used.
    """
    if settings.practice_model:
        server = PracticeServer(clock=clock)
        await server.start()
        stack.push_async_callback(server.stop)
        log.warning("practice_model", url=server.url, note="drafts are made by rules; this is no language model")
        wanted = ModelSettings(base_url=server.url, model=PRACTICE_MODEL, key="", sees=False)
    elif settings.model_url:
        wanted = ModelSettings(
            base_url=settings.model_url,
            model=settings.model,
            key=_key(settings.model_key_file) or settings.model_key.get_secret_value(),
            sees=settings.model_vision,
        )
    else:
        return None, None
    model = _opened(wanted, clock=clock)
    stack.push_async_callback(model.close)
    facts = ModelFacts(
        name=wanted.model,
        base_url=_without_secret(wanted.base_url),
        sees=wanted.sees,
        practice=settings.practice_model,
    )
    return model, facts


def _opened(wanted: ModelSettings, *, clock: Clock) -> Model:
    try:
        # An extra of its own, which only controllers with a model need.
        from droidfleet_designer.model.openai_model import OpenAIModel  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise PreconditionError(
            "MODEL_LIBRARY_MISSING",
            f"a model is set, and the library to talk to it is not installed ({error.name}).",
            hint="Install it with: pip install 'droidfleet[designer]'",
        ) from error
    return OpenAIModel(wanted, clock=clock)


def _key(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        with file.open("rb") as opened:
            key = opened.read(MAX_KEY_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError("BAD_SETTING", f"model_key_file: {file} cannot be read.") from error
    if not key:
        raise InvalidInputError("BAD_SETTING", f"model_key_file: {file} is empty.")
    return key


def _without_secret(url: str) -> str:
    """The URL without a user, a password or a query, where some put their key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
