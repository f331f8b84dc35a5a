"""What explorations of this process wait for a person to allow. In memory: after a restart they ask again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import structlog

from droidfleet_designer.ports import Answered, Approver
from droidfleet_shared.clock import Deadline
from droidfleet_shared.errors import PreconditionError

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class _Asked:
    approval_id: str
    answered: Answered | None = None
    """None: nobody has answered."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Approvals:
    """At most one a draft, as its exploration does one thing after another."""

    def __init__(self) -> None:
        self._asked: dict[str, _Asked] = {}

    def of(self, draft_id: str) -> Approver:
        """Whoever answers for one draft."""
        return _DraftApprover(self, draft_id)

    def asked(self, draft_id: str, approval_id: str) -> None:
        """Takes answers from now on: people read the question before the exploration waits for them."""
        self._asked[draft_id] = _Asked(approval_id)

    def over(self, draft_id: str) -> None:
        """Takes no answer any more."""
        self._asked.pop(draft_id, None)

    def answer(self, draft_id: str, approval_id: str, *, allowed: bool, actor: str) -> None:
        """Allows it, or not; counts once.

        Raises:
            PreconditionError: ``APPROVAL_OVER``: it was answered, or nobody waits for it (any more).
        """
        asked = self._asked.get(draft_id)
        if asked is None or asked.approval_id != approval_id or asked.answered is not None:
            raise PreconditionError(
                "APPROVAL_OVER",
                f"approval {approval_id!r} was answered already, or its time is over.",
                hint="See what the draft waits for now.",
            )
        asked.answered = Answered(allowed=allowed, by=actor)
        asked.woken.set()
        log.info("approval_answered", draft_id=draft_id, approval_id=approval_id, allowed=allowed, actor=actor)

    async def wait(self, draft_id: str, approval_id: str, *, deadline: Deadline) -> Answered:
        """Waits for the answer; not allowed, by nobody, when none comes by the deadline."""
        asked = self._asked.get(draft_id)
        if asked is None or asked.approval_id != approval_id:
            self.asked(draft_id, approval_id)
            asked = self._asked[draft_id]
        try:
            async with asyncio.TaskGroup() as group:
                timer = group.create_task(_wake(asked, deadline), name="approval-deadline")
                await asked.woken.wait()
                timer.cancel()
            return asked.answered or Answered(allowed=False)
        finally:
            if self._asked.get(draft_id) is asked:
                del self._asked[draft_id]


async def _wake(asked: _Asked, deadline: Deadline) -> None:
    await deadline.clock.sleep(deadline.remaining())
    asked.woken.set()


class _DraftApprover(Approver):
    def __init__(self, approvals: Approvals, draft_id: str) -> None:
        self._approvals = approvals
        self._draft_id = draft_id

    async def approve(self, approval_id: str, *, deadline: Deadline) -> Answered:
        return await self._approvals.wait(self._draft_id, approval_id, deadline=deadline)
