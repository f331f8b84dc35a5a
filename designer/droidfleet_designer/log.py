"""The entries of an exploration's log. They are what is resumed from, and what is shown to whoever watches.

Texts of tools hold what a screen said, already quoted. No entry holds a key or the value of a secret.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from droidfleet_designer.conversation import Stop, ToolCall, Usage
from droidfleet_designer.draft.draft import Brief, Draft


class EntryModel(BaseModel):
    """Base of the entries."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


class Ending(StrEnum):
    """How an exploration ended."""

    DRAFTED = "DRAFTED"
    STOPPED = "STOPPED"
    """By a person."""
    FAILED = "FAILED"
    """``code`` says why: a budget, the model, the phone, no acceptable draft."""


class OutcomeKind(StrEnum):
    """How a tool call ended (architecture, section 5)."""

    RESULT = "result"
    RETRY = "retry"
    """The model may correct it: bad arguments, an old element number."""
    FAILED = "failed"
    NEEDS_APPROVAL = "needs_approval"
    """Withheld; a person did not allow it."""
    INTERRUPTED = "interrupted"
    """Nobody knows whether it happened: the process ended, or the phone's answer never came."""


class Began(EntryModel):
    """The first entry. ``prices``: money per million tokens, input and output, in ``currency``; None: unknown."""

    kind: Literal["began"] = "began"
    brief: Brief
    model: str
    sees: bool
    max_turns: int
    max_tokens: int
    max_money: float | None = None
    prices: tuple[float, float] | None = None
    currency: str = "USD"


class Resumed(EntryModel):
    """The process that explored ended; another one goes on."""

    kind: Literal["resumed"] = "resumed"


class Spoke(EntryModel):
    """A turn of the model, whole. ``spent``: tokens and money altogether so far."""

    kind: Literal["spoke"] = "spoke"
    turn: int
    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: Stop
    usage: Usage
    spent_tokens: int
    spent_money: float | None = None
    model_ms: int = 0


class Told(EntryModel):
    """What the loop said to the model in a person's place, beside the answers to its calls."""

    kind: Literal["told"] = "told"
    code: str = Field(description="A stable word: NO_CALL, OUTPUT_CUT, STAGNATION, LAST_TURNS.")
    text: str


class ToolBegan(EntryModel):
    """A call is about to be carried out: written before it is."""

    kind: Literal["tool_began"] = "tool_began"
    call_id: str
    name: str
    arguments_json: str
    request_id: str = Field("", description="Of the step on the phone, where there is one.")


class ToolEnded(EntryModel):
    """What came of a call. One without `ToolBegan` was not carried out: its arguments were cut (CALL_CUT) or malformed
    (CALL_MALFORMED), or a call before it did not work. ``snapshot``: the observation's id; ``picture``: a digest."""

    kind: Literal["tool_ended"] = "tool_ended"
    call_id: str
    name: str
    outcome: OutcomeKind
    code: str = ""
    text: str
    snapshot: str = ""
    picture: str = ""
    tool_ms: int = 0


class ApprovalAsked(EntryModel):
    """The guard withholds a call until a person allows it."""

    kind: Literal["approval_asked"] = "approval_asked"
    approval_id: str
    call_id: str
    name: str
    arguments_json: str
    why: str
    until: datetime


class ApprovalAnswered(EntryModel):
    """A person's answer, or that there was none in time."""

    kind: Literal["approval_answered"] = "approval_answered"
    approval_id: str
    allowed: bool
    by: str = ""


class Proposed(EntryModel):
    """A draft that passed every check."""

    kind: Literal["proposed"] = "proposed"
    draft: Draft


class Problem(EntryModel):
    """Something went wrong that the exploration survives: the model was busy, the phone did not answer."""

    kind: Literal["problem"] = "problem"
    code: str
    message: str
    again_in_s: float | None = None


class Ended(EntryModel):
    """The last entry."""

    kind: Literal["ended"] = "ended"
    ending: Ending
    code: str = ""
    message: str = ""
    hint: str = ""
    spent_tokens: int = 0
    spent_money: float | None = None


Entry = Annotated[
    Began
    | Resumed
    | Spoke
    | Told
    | ToolBegan
    | ToolEnded
    | ApprovalAsked
    | ApprovalAnswered
    | Proposed
    | Problem
    | Ended,
    Field(discriminator="kind"),
]


class Logged(EntryModel):
    """An entry with its place and time."""

    sequence: int
    at: datetime
    entry: Entry
