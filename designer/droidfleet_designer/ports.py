"""What the designer needs from the rest: the phone, the fleet, a log that outlives the process, and an approver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_designer.draft.draft import Draft
from droidfleet_designer.log import Entry, Logged
from droidfleet_shared.clock import Deadline
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.screen.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class DeviceFact:
    """A device as a list shows it. ``state``: the API's word (ONLINE, BUSY, OFFLINE, ...); ``busy_with``: a clause."""

    name: str
    state: str
    model: str = ""
    android: str = ""
    foreground: str = ""
    labels: Mapping[str, str] | None = None
    busy_with: str = ""


@dataclass(frozen=True, slots=True)
class GroupFact:
    """A group as a list shows it."""

    name: str
    members: int
    query: str = ""


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture of the display."""

    media_type: str
    data: bytes
    width: int
    height: int


class Phones(ABC):
    """The live sessions of the fleet's phones, and what there is.

    Every method raises `DroidfleetError` as `DeviceService` does: ``DEVICE_NOT_FOUND``, ``DEVICE_OFFLINE``,
    ``DEVICE_BUSY`` (says who has it), ``LEASE_LOST``, ``INVALID_STEP``, ``OUTCOME_UNKNOWN``.
    """

    @abstractmethod
    async def devices(self) -> Sequence[DeviceFact]:
        """The fleet's devices by name, at most 200."""

    @abstractmethod
    async def groups(self) -> Sequence[GroupFact]:
        """The groups by name, at most 200."""

    @abstractmethod
    async def open(self, device: str, *, holder: str, ttl_s: float) -> str:
        """Takes the lease; its session id."""

    @abstractmethod
    async def renew(self, device: str, session_id: str) -> None:
        """Keeps it for its ttl again."""

    @abstractmethod
    async def close(self, device: str, session_id: str) -> None:
        """Gives it back. Harmless when it is gone."""

    @abstractmethod
    async def look(self, device: str) -> Snapshot:
        """What the active window shows. Needs no lease."""

    @abstractmethod
    async def shot(self, device: str) -> Shot:
        """A picture of the display. Needs no lease."""

    @abstractmethod
    async def step(self, device: str, session_id: str, *, step: Mapping[str, JsonValue], request_id: str) -> TaskResult:
        """Runs one step of the protocol, once for each ``request_id``."""


class PlanCheck(ABC):
    """What only the fleet can say about a draft: whether its target is there and its schedule can be."""

    @abstractmethod
    async def issues(self, draft: Draft) -> Sequence[Issue]:
        """All that is wrong with target, schedule and retry; paths as in the draft (``/schedule/cron``)."""


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What is kept of one exploration: far more than one within its budget needs. Bytes as they are kept."""

    entries: int = 5_000
    entry_bytes: int = 20_000_000
    snapshots: int = 500
    snapshot_bytes: int = 20_000_000
    pictures: int = 200
    picture_bytes: int = 50_000_000


class ExplorationLog(ABC):
    """What happened, in order, kept where a restart does not reach it. One writer: the exploration.

    Contract: when `append` has returned, the entry is there after a crash. Snapshots and pictures are kept before the
    entry that refers to them. What is kept is bounded (`LogBounds`); past a bound: ``EXPLORATION_FULL``
    (`ExhaustedError`), and nothing is kept. `Ended` is taken all the same, and nothing after it: ``EXPLORATION_OVER``
    (`PreconditionError`).
    """

    @abstractmethod
    async def append(self, entry: Entry) -> int:
        """Adds an entry; its number, 1, 2, ..."""

    @abstractmethod
    async def entries(self) -> Sequence[Logged]:
        """All entries so far."""

    @abstractmethod
    async def keep_snapshot(self, snapshot_id: str, snapshot: Snapshot) -> None:
        """Keeps a snapshot under its id (``s0`` before the exploration, ``s1``, ``s2``, ...). Kept again, the later one
        counts: no entry refers to the earlier one, as when the process ended in between."""

    @abstractmethod
    async def snapshot(self, snapshot_id: str) -> Snapshot | None:
        """A snapshot; None: there is none such."""

    @abstractmethod
    async def keep_picture(self, shot: Shot) -> str:
        """Keeps a picture; its digest (SHA-256, hex)."""

    @abstractmethod
    async def picture(self, digest: str) -> Shot | None:
        """A picture; None: it is no longer there."""

    @abstractmethod
    def heard(self, text: str) -> None:
        """A piece of what the model says just now, for those who watch. Not kept: the whole is, when it is said."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A person's answer. ``by``: who gave it; empty: nobody did in time."""

    allowed: bool
    by: str = ""


class Approver(ABC):
    """Whoever may allow what the guard withholds."""

    @abstractmethod
    async def approve(self, approval_id: str, *, deadline: Deadline) -> Answered:
        """Waits for the answer to an `ApprovalAsked` entry that is logged already. No answer by the deadline: it is not
        allowed, by nobody."""
