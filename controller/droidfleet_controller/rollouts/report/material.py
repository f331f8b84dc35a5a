"""What a report is made of, read from the database page by page. Decides nothing about its form."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.rollouts.rollout import Decision, MembershipChange, Signature
from droidfleet_controller.rollouts.views import MemberFilter, MemberView, RolloutView
from droidfleet_controller.store import executions, rollout_failures, rollouts
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.rollout_failures import FailedPhone
from droidfleet_shared.protocol.result import TaskResult

PAGE = 200
"""Rows read in one transaction and written in one go: some milliseconds, so that a report holds nobody up."""

MAX_SIGNATURES = 50
"""Kinds of failures that are shown one by one, the most frequent first."""

PHONES_SHOWN = 4
"""Phones that stand for all that failed in one way, each with its picture."""

MAX_PICTURES_BYTES = 12 * 1024 * 1024
"""Of all pictures in one page together: it still opens on a phone, and goes through most mail servers."""

PICTURE_TYPES = frozenset({"image/jpeg", "image/png", "image/webp"})
"""What a browser draws and never carries out."""

BEFORE_THE_FIRST = -1
"""Places of members count from 0."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReportMember:
    """A phone with how its last execution ended, without the steps; None: it has not, or nobody was told."""

    view: MemberView
    result: TaskResult | None


@dataclass(frozen=True, slots=True)
class ShownPhone:
    """A phone that failed in some way; ``picture``: a data URI, empty when there is none, or no room for it."""

    phone: FailedPhone
    picture: str = ""


@dataclass(frozen=True, slots=True)
class ShownFailure:
    """The same failure on several phones, some of which stand for all."""

    signature: Signature
    count: int
    breaker_open: bool
    phones: tuple[ShownPhone, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """One rollout. ``view``: as it was when the report was asked for."""

    view: RolloutView
    database: Database
    files: ArtifactFiles

    @property
    def rollout_id(self) -> str:
        """Its id."""
        return self.view.rollout.rollout_id

    async def members(self) -> AsyncIterator[ReportMember]:
        """All members by place, the dry run's first."""
        everyone, after = MemberFilter(), BEFORE_THE_FIRST
        while True:

            def read(connection: Connection, after: int = after) -> list[ReportMember]:
                views = rollouts.member_page(connection, self.rollout_id, everyone, after=after, limit=PAGE)
                found = executions.find(connection, [view.member.execution_id for view in views])
                ended = {execution_id: execution.result for execution_id, execution in found.items()}
                return [ReportMember(view, ended.get(view.member.execution_id)) for view in views]

            page = await self.database.run(read)
            for member in page:
                yield member
            if len(page) < PAGE:
                return
            after = page[-1].view.member.place

    def decisions(self) -> AsyncIterator[Decision]:
        """All decisions, the oldest first."""
        return self._numbered(rollouts.decision_page)

    def membership(self) -> AsyncIterator[MembershipChange]:
        """The membership log, the oldest line first."""
        return self._numbered(rollouts.membership_page)

    async def _numbered(self, page_of: Callable[..., list[tuple[int, T]]]) -> AsyncIterator[T]:
        after = 0
        while True:

            def read(connection: Connection, after: int = after) -> list[tuple[int, T]]:
                return page_of(connection, self.rollout_id, after=after, limit=PAGE)

            page = await self.database.run(read)
            for _, item in page:
                yield item
            if len(page) < PAGE:
                return
            after = page[-1][0]

    async def failures(self, *, pictures: bool) -> Sequence[ShownFailure]:
        """The ways in which phones failed, the most frequent first. ``pictures``: with their contents."""
        memory = self.view.rollout.memory
        room = MAX_PICTURES_BYTES if pictures else 0
        found: list[ShownFailure] = []
        for signature, count in _most(memory.signatures.items()):
            phones = await self.database.run(
                lambda connection, signature=signature: rollout_failures.failed_so(  # type: ignore[misc]  # bound now
                    connection, self.rollout_id, signature, limit=PHONES_SHOWN
                )
            )
            shown: list[ShownPhone] = []
            for phone in phones:
                data = await self._picture(phone) if phone.picture_bytes <= room else None
                room -= len(data or b"")
                shown.append(ShownPhone(phone, _uri(phone.picture_type, data) if data else ""))
            found.append(ShownFailure(signature, count, signature in memory.open_breakers, tuple(shown)))
        return found

    async def _picture(self, phone: FailedPhone) -> bytes | None:
        if not phone.picture_sha256 or phone.picture_type not in PICTURE_TYPES:
            return None
        return await asyncio.to_thread(self.files.read, phone.picture_sha256)


def _most(signatures: Iterable[tuple[Signature, int]]) -> Sequence[tuple[Signature, int]]:
    return sorted(signatures, key=lambda item: (-item[1], str(item[0])))[:MAX_SIGNATURES]


def _uri(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{b64encode(data).decode()}"
