"""One phone under a lease: taken, renewed while it is held, given back; and every wait for the phone has an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import structlog
from pydantic import JsonValue

from droidfleet_designer.ports import Phones, Shot
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DroidfleetError, PreconditionError, UnavailableError
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.screen.snapshot import Snapshot

log = structlog.get_logger(__name__)

TTL_S = 60.0
"""Of the lease: so long a phone stays taken when this process is killed."""

RENEW_S = 20.0
"""Two renewals may be lost before the lease is."""

READ_S = 30.0
"""For a look or a picture: more than the agent and the way to it may take (20 and 5 s)."""

STEP_S = 120.0
"""For a step: more than the agent may take (100 s) and the way to it."""

SHORT_S = 15.0
"""For what needs no phone: opening, renewing and closing."""

LEAVE_S = 30.0
"""For what is done on the phone before it is given back."""


class Phone:
    """The phone. Methods raise as those of `Phones`, and `UnavailableError` when nothing answers in time."""

    def __init__(self, *, phones: Phones, device: str, holder: str, clock: Clock) -> None:
        self._phones = phones
        self._device = device
        self._holder = holder
        self._clock = clock
        self._session = ""
        self._lost: DroidfleetError | None = None
        self._open = AsyncExitStack()
        self._renewing: asyncio.Task[None] | None = None

    @property
    def device(self) -> str:
        """Its name."""
        return self._device

    async def take(self) -> None:
        """Takes the lease.

        Raises:
            DroidfleetError: ``DEVICE_BUSY`` says who has it.
        """
        assert not self._session, "taken once"
        async with _answer(SHORT_S, self._device):
            self._session = await self._phones.open(self._device, holder=self._holder, ttl_s=TTL_S)
        self._lost = None
        tasks = await self._open.enter_async_context(asyncio.TaskGroup())
        self._renewing = tasks.create_task(self._renew(), name=f"renew-{self._device}")

    async def give_back(self, *, before: Callable[[], Awaitable[None]]) -> None:
        """Runs ``before`` while it is still ours, and gives the lease back, also when this is cancelled meanwhile.

        Nothing of it is an error: a lease that cannot be given back expires. Harmless when it is not held.
        """
        if not self._session:
            return
        if self._renewing is not None:
            self._renewing.cancel()
        try:
            await _to_its_end(self._giving_back(before), name=f"give-back-{self._device}")
        finally:
            self._session = ""
            await self._open.aclose()

    async def look(self) -> Snapshot:
        """What the active window shows."""
        async with _answer(READ_S, self._device):
            return await self._phones.look(self._device)

    async def shot(self) -> Shot:
        """A picture of the display."""
        async with _answer(READ_S, self._device):
            return await self._phones.shot(self._device)

    async def step(self, step: Mapping[str, JsonValue], *, request_id: str) -> TaskResult:
        """Runs one step.

        Raises:
            DroidfleetError: ``LEASE_LOST`` also at once, without asking, when it is known; ``OUTCOME_UNKNOWN`` also
                when no answer came in time.
        """
        if self._lost is not None:
            raise self._lost
        if not self._session:
            raise PreconditionError("LEASE_LOST", f"{self._device} is not leased.")
        try:
            async with _answer(STEP_S, self._device, code="OUTCOME_UNKNOWN"):
                return await self._phones.step(self._device, self._session, step=step, request_id=request_id)
        except DroidfleetError as error:
            self._note(error)
            raise

    async def _renew(self) -> None:
        while self._lost is None:
            await self._clock.sleep(RENEW_S)
            try:
                async with _answer(SHORT_S, self._device):
                    await self._phones.renew(self._device, self._session)
            except DroidfleetError as error:
                # What may work later is asked again; whether the lease outlived it, the phone's agent will say.
                self._note(error)
                log.warning("lease_not_renewed", device=self._device, code=error.code)

    def _note(self, error: DroidfleetError) -> None:
        if error.code == "LEASE_LOST":
            self._lost = error

    async def _giving_back(self, before: Callable[[], Awaitable[None]]) -> None:
        if self._lost is None:
            try:
                async with asyncio.timeout(LEAVE_S):
                    await before()
            except (DroidfleetError, TimeoutError) as error:
                code = error.code if isinstance(error, DroidfleetError) else "NO_ANSWER"
                log.warning("phone_left_as_it_is", device=self._device, code=code)
        with suppress(DroidfleetError):
            async with _answer(SHORT_S, self._device):
                await self._phones.close(self._device, self._session)


@asynccontextmanager
async def _answer(within_s: float, device: str, *, code: str = "DEVICE_OFFLINE") -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(within_s):
            yield
    except TimeoutError:
        raise UnavailableError(code, f"{device}: no answer came within {within_s:g} s.") from None


async def _to_its_end(work: Coroutine[object, object, None], *, name: str) -> None:
    """Runs ``work``, which ends by itself, to its end; a cancellation that comes meanwhile is passed on after it."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()
