"""Every message on the bus, as pydantic models in JSON with a version ``v``.

Unknown fields are kept out (dropped), so that a newer peer may add some; an unknown *version* is refused with
`UnknownVersionError`, which the reader reports as an event of its own. Task documents travel as their JSON text.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.protocol.result import ArtifactModel, StepResult, TaskResult

VERSION = 1
MAX_MESSAGE_BYTES = 900 * 1024
"""Under nats-server's default `max_payload` of 1 MiB with room for headers; larger closes the client for good."""

WINDOW = 4
"""How many executions one desired-state document carries; the rest stays queued in the database."""

MISSED_HEARTBEATS = 3
"""An agent that was not heard for this many heartbeats is offline, and its name may go to another host."""


class BadMessageError(DroidfleetError):
    """A message on the bus that cannot be read. Reported, acknowledged, never retried."""


class UnknownVersionError(BadMessageError):
    """A message of a version that this program does not speak."""


class Message(BaseModel):
    """Base of every bus message."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)

    v: Literal[1] = 1

    def encode(self) -> bytes:
        """The message as JSON bytes."""
        return self.model_dump_json(by_alias=True, exclude_none=True).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Reads a message.

        Raises:
            UnknownVersionError: ``v`` is missing or not one that this program speaks.
            BadMessageError: not JSON, or not of this shape.
        """
        check_version(data)
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise BadMessageError(
                "BAD_MESSAGE", f"{cls.__name__}: {error.errors(include_input=False)[0]['msg']}"
            ) from error


def check_version(data: bytes) -> None:
    """Refuses what is not JSON or not of a version that this program speaks.

    Raises:
        UnknownVersionError, BadMessageError.
    """
    try:
        raw = from_json(data)
    except ValueError as error:
        raise BadMessageError("BAD_MESSAGE", "the message is not JSON") from error
    version = raw.get("v") if isinstance(raw, dict) else None
    if version != VERSION:
        raise UnknownVersionError(
            "UNKNOWN_MESSAGE_VERSION",
            f"message version {version!r}; this program speaks version {VERSION}.",
            hint="Upgrade the older of agent and controller.",
        )


class Wanted(StrEnum):
    """What the controller wants of an assigned execution."""

    RUN = "RUN"
    PAUSE = "PAUSE"
    """To be held at its next step boundary or in its wait; what has not begun does not begin."""
    CANCEL = "CANCEL"


class ExecutionRef(BaseModel):
    """One attempt at one execution."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)

    execution_id: str
    attempt: int


class Assignment(ExecutionRef):
    """One execution in an agent's window."""

    wanted: Wanted
    reason: str = Field("", description="Why CANCEL is wanted, in the words of who asked for it; may be empty.")
    task: str = Field(description="The task document's JSON text, exactly as validated.")
    start_within_s: float | None = Field(
        None,
        description="Seconds, counted by the agent from when it read the document, after which it must not start.",
    )


class DesiredState(Message):
    """Everything that one agent should be doing, and what the controller has recorded.

    The agent makes what it runs equal to ``executions`` (in order). ``recorded`` lists finished attempts whose results
    the database holds: only then may the agent forget them. Absence is no receipt.
    """

    agent: str
    epoch: str = Field(
        "", description="Random id of the controller's database. Only documents of one epoch have an order."
    )
    generation: int = Field(description="Grows with every change; an older document than the last one is ignored.")
    host_id: str = Field(
        "",
        description="The host (`Heartbeat.host_id`) that this is for; any when empty. An agent of the same name on "
        "another host leaves it alone: it cannot know what was begun there.",
    )
    executions: tuple[Assignment, ...] = ()
    recorded: tuple[ExecutionRef, ...] = ()


class PhoneState(StrEnum):
    """How the agent sees its phone."""

    ONLINE = "ONLINE"
    OFFLINE = "OFFLINE"
    UNAUTHORIZED = "UNAUTHORIZED"


class Heartbeat(Message):
    """An agent's sign of life; the first of a process (``hello``) asks for the agent's name and is answered."""

    agent: str
    instance: str = Field(description="Random id of the agent process (of the agent within it).")
    host_id: str = Field(description="Random id kept in the host's state folder: one host, one id.")
    host: str
    pid: int
    hello: bool = False
    serial: str
    phone: PhoneState
    version: str
    capabilities: tuple[str, ...] = ()
    model: str = ""
    android: str = ""
    battery_percent: int | None = None
    foreground_package: str = ""
    running: ExecutionRef | None = None
    epoch: str = Field("", description="The epoch of the last desired-state document that the agent applied.")
    generation: int = Field(0, description="The generation of that document.")
    leaving: bool = Field(
        False,
        description="The agent ends in order; this is its last one. ``running`` is then left for its next process.",
    )
    sent_at: datetime = Field(description="By the host's own clock.")
    round_trip_s: float | None = Field(
        None, description="What the way to the controller and back took at the last hello, without the time in between."
    )


class HeartbeatReply(Message):
    """The controller's answer to a hello, and to any heartbeat of an instance that does not hold the name."""

    granted: bool
    holder: str = Field("", description="Who holds the name: host, pid and since when, for people.")
    took_s: float | None = Field(None, description="From the heartbeat's arrival to this answer.")


class EventBase(Message):
    """Fields of every event. ``sequence`` counts from 1 within one attempt and makes ingest idempotent."""

    agent: str
    execution_id: str
    attempt: int
    sequence: int
    at: datetime


class ExecutionAccepted(EventBase):
    """The agent has taken the execution into its journal and will run it."""

    kind: Literal["ExecutionAccepted"] = "ExecutionAccepted"


class ExecutionRejected(EventBase):
    """The agent will never run it: not its name, not a valid task, or past its time."""

    kind: Literal["ExecutionRejected"] = "ExecutionRejected"
    code: str
    message: str


class ExecutionStarted(EventBase):
    """The first step is about to run."""

    kind: Literal["ExecutionStarted"] = "ExecutionStarted"
    random_seed: int | None = None


class ExecutionResumed(EventBase):
    """A later process of the agent goes on where an earlier one broke off."""

    kind: Literal["ExecutionResumed"] = "ExecutionResumed"
    restarts: int = Field(description="How often this has happened to the attempt.")


class ExecutionPaused(EventBase):
    """The agent holds it, because the controller wants that."""

    kind: Literal["ExecutionPaused"] = "ExecutionPaused"
    step_id: str = Field("", description="The step in which it is held; empty between two.")


class ExecutionContinued(EventBase):
    """It goes on from where it was held."""

    kind: Literal["ExecutionContinued"] = "ExecutionContinued"
    step_id: str = ""


class StepStarted(EventBase):
    """A step is about to run."""

    kind: Literal["StepStarted"] = "StepStarted"
    step_id: str
    path: str


class ArtifactStored(EventBase):
    """Something too large for a result, kept by a step that goes on; comes before the step's end."""

    kind: Literal["ArtifactStored"] = "ArtifactStored"
    step_id: str
    path: str
    artifact: ArtifactModel
    data: str = Field(description="The content in base64; at most `artifacts.MAX_ARTIFACT_BYTES` before that.")


class StepFinished(EventBase):
    """A step ended."""

    kind: Literal["StepFinished"] = "StepFinished"
    result: StepResult


class ExecutionFinished(EventBase):
    """The execution ended; ``result`` holds everything about it."""

    kind: Literal["ExecutionFinished"] = "ExecutionFinished"
    result: TaskResult


Event = Annotated[
    ExecutionAccepted
    | ExecutionRejected
    | ExecutionStarted
    | ExecutionResumed
    | ExecutionPaused
    | ExecutionContinued
    | StepStarted
    | ArtifactStored
    | StepFinished
    | ExecutionFinished,
    Field(discriminator="kind"),
]

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


def decode_event(data: bytes) -> Event:
    """Reads any event.

    Raises:
        UnknownVersionError: of a version that this program does not speak.
        BadMessageError: not JSON, an unknown kind, or not of its kind's shape.
    """
    try:
        event = _EVENTS.validate_json(data)
        if "v" not in event.model_fields_set:
            check_version(data)
    except ValidationError as error:
        # What its version says comes first; what is right is read once only.
        check_version(data)
        raise BadMessageError("BAD_MESSAGE", f"event: {error.errors(include_input=False)[0]['msg']}") from error
    return event
