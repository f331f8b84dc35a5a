"""What the supervisor and its processes tell each other: one JSON object on a line."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from droidfleet_agent.options import HostOptions

MAX_LINE_BYTES = 64 * 1024


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)

    def line(self) -> bytes:
        """The message with its end of line."""
        return self.model_dump_json().encode() + b"\n"


class Configure(_Line):
    """The first command of a process."""

    do: Literal["configure"] = "configure"
    options: HostOptions


class StartAgent(_Line):
    """Start an agent for a phone."""

    do: Literal["start"] = "start"
    name: str
    serial: str


class StopAgent(_Line):
    """End a phone's agent in order."""

    do: Literal["stop"] = "stop"
    serial: str


class AgentOnline(_Line):
    """The controller granted the agent its name."""

    event: Literal["agent_online"] = "agent_online"
    name: str
    serial: str
    instance: str


class AgentEnded(_Line):
    """The agent ended; ``code`` is empty when it was told to."""

    event: Literal["agent_ended"] = "agent_ended"
    serial: str
    code: str = ""
    message: str = ""


Command = Annotated[Configure | StartAgent | StopAgent, Field(discriminator="do")]
News = Annotated[AgentOnline | AgentEnded, Field(discriminator="event")]

COMMANDS: TypeAdapter[Command] = TypeAdapter(Command)
NEWS: TypeAdapter[News] = TypeAdapter(News)
