"""The messages of the live session: what is asked of one agent on ``fleet.rpc.<agent>.<method>``, and its answers.

Core request and reply, at most once. Every answer is a `Reply`; one with a ``fault`` says why there is nothing else in
it. Selectors and steps travel as their JSON text. Every answer fits one message (`MAX_MESSAGE_BYTES`): pictures are
scaled, trees are cut, and both say so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from droidfleet_shared.bus.messages import VERSION, Message
from droidfleet_shared.errors import (
    ConflictError,
    DeniedError,
    DroidfleetError,
    ExhaustedError,
    InvalidInputError,
    Kind,
    NotFoundError,
    PreconditionError,
    UnavailableError,
)
from droidfleet_shared.protocol.result import BoundsModel, TaskResult
from droidfleet_shared.screen.snapshot import Snapshot

MIN_TTL_S = 1.0
DEFAULT_TTL_S = 60.0
MAX_TTL_S = 300.0
"""How long an agent waits for a holder that may be dead, before its executions go on."""

MAX_READ_S = 20.0
"""A tree or a picture: the first call after a restart of the phone starts its automation server."""

MAX_STEP_S = 100.0
"""Bound of one live step, whatever its fields add up to. An agent's permission to answer (the broker's
`allow_responses`) ends two minutes after the request."""

MAX_TEXT = 1024
"""Characters of one text of a node in a tree; its selectors are made from the whole."""


class Method(StrEnum):
    """The last token of the subject."""

    OPEN = "open"
    RENEW = "renew"
    CLOSE = "close"
    TREE = "tree"
    LOOK = "look"
    SCREENSHOT = "screenshot"
    STEP = "step"


class SessionModel(BaseModel):
    """Base of what messages of the session hold."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


class IssueModel(SessionModel):
    """One validation issue of a step that was refused."""

    path: str
    code: str
    message: str
    hint: str = ""


class Fault(SessionModel):
    """An error, as it travels."""

    kind: Kind
    code: str
    message: str
    hint: str = ""
    issues: tuple[IssueModel, ...] = ()


# Requests.


class OpenSession(Message):
    """Asks for the lease. ``holder`` is a name for people, who read it when they find the device busy."""

    holder: Annotated[str, Field(min_length=1, max_length=200)]
    ttl_s: Annotated[float, Field(ge=MIN_TTL_S, le=MAX_TTL_S)] = DEFAULT_TTL_S


class RenewSession(Message):
    """Keeps the lease for as long again as was asked at the opening."""

    lease_id: str


class CloseSession(Message):
    """Gives the lease back. Harmless when it is gone already."""

    lease_id: str


class ReadTree(Message):
    """Asks for the screen's tree; needs no lease."""

    timeout_s: float = MAX_READ_S
    raw: bool = Field(False, description="Also the phone's own XML, all windows.")


class TakeLook(Message):
    """Asks for a look as a value, on which selectors can be matched elsewhere; needs no lease."""

    timeout_s: float = MAX_READ_S


class ReadScreenshot(Message):
    """Asks for a picture of the screen; needs no lease."""

    timeout_s: float = MAX_READ_S


class RunStep(Message):
    """Runs one step of the protocol under a lease. The same ``request_id`` again gives the first answer again."""

    lease_id: str
    request_id: Annotated[str, Field(min_length=1, max_length=64)]
    step: str = Field(description="The step's JSON text, an object as in a task's `steps`.")


# Answers.


class Reply(Message):
    """Base of every answer."""

    fault: Fault | None = None

    def checked(self) -> None:
        """Raises:
        DroidfleetError: the agent refused or failed, as it said.
        """
        if self.fault is not None:
            raise error_of(self.fault)


class Leased(Reply):
    """The lease as it now is; empty in the answer to a close."""

    lease_id: str = ""
    expires_in_s: float = 0.0


class OfferedSelector(SessionModel):
    """A selector that names exactly the node now. ``note``: why it may not next time; empty when it should last."""

    selector: str = Field(description="JSON text.")
    note: str = ""


class RejectedSelector(SessionModel):
    """A selector that comes to mind and does not name the node alone, and why."""

    selector: str = Field(description="JSON text.")
    why: str


class SeenNode(SessionModel):
    """A node of the tree. ``flags`` are the words of what is true of it, such as ``clickable`` or ``visible``."""

    parent: int = Field(-1, description="Place of its parent in the list of nodes; -1 for the window's root.")
    text: str = ""
    description: str = ""
    hint: str = ""
    resource_id: str = ""
    class_name: str = ""
    package_name: str = ""
    bounds: BoundsModel = Field(description="The visible part, or all of it where nothing is visible.")
    flags: tuple[str, ...] = ()
    offered: tuple[OfferedSelector, ...] = ()
    rejected: tuple[RejectedSelector, ...] = ()


class SeenTree(Reply):
    """One look at the active window, its nodes in document order."""

    package_name: str = ""
    activity_name: str = ""
    display: BoundsModel | None = None
    keyboard: BoundsModel | None = None
    rotation: int = 0
    nodes: tuple[SeenNode, ...] = ()
    omitted: int = Field(0, description="How many nodes at the end were left out, because the message was full.")
    fewer_selectors: bool = Field(False, description="Only the best selector of each node was kept, for lack of room.")
    xml: str = Field("", description="The phone's own dump; cut with a marker where it did not fit.")

    def encode(self) -> bytes:
        """Without what is at its default, which is most of a tree."""
        body = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return json.dumps({"v": VERSION, **body}, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


class Looked(Reply):
    """One look. None only beside a fault."""

    snapshot: Snapshot | None = None


class SeenPicture(Reply):
    """A picture of the whole display. ``scale_percent`` is below 100 where it was made smaller to fit."""

    media_type: str = ""
    data: str = Field("", description="The picture in base64.")
    width: int = 0
    height: int = 0
    scale_percent: int = 100


class StepRan(Reply):
    """How the step went: the result of a task of this one step."""

    result: TaskResult | None = None


# Errors, both ways.

_ERRORS: Mapping[Kind, type[DroidfleetError]] = {
    "invalid": InvalidInputError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "precondition": PreconditionError,
    "unavailable": UnavailableError,
    "denied": DeniedError,
    "exhausted": ExhaustedError,
}


def fault_of(error: DroidfleetError) -> Fault:
    """The error as it travels."""
    issues: tuple[IssueModel, ...] = ()
    if isinstance(error, InvalidInputError):
        issues = tuple(IssueModel.model_validate(issue, from_attributes=True) for issue in error.issues)
    return Fault(kind=error.kind, code=error.code, message=error.message, hint=error.hint, issues=issues)


def error_of(fault: Fault) -> DroidfleetError:
    """The error that travelled."""
    kind = _ERRORS.get(fault.kind, DroidfleetError)
    if issubclass(kind, InvalidInputError):
        return kind(fault.code, fault.message, hint=fault.hint, issues=fault.issues)
    return kind(fault.code, fault.message, hint=fault.hint)
