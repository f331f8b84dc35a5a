"""Live requests to one device's agent: look at its phone, and act on it under a session. Over core request and reply.

Knows no screen and keeps no state: the agent owns the lease and does the work.
"""

from __future__ import annotations

from typing import TypeVar

import structlog

from droidfleet_controller.fleet.device import DeviceState
from droidfleet_controller.fleet.registry import Registry
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import BadMessageError, Message
from droidfleet_shared.bus.port import Bus, BusUnavailableError, NoRespondersError, PayloadTooLargeError
from droidfleet_shared.bus.session import (
    MAX_READ_S,
    MAX_STEP_S,
    MAX_TTL_S,
    MIN_TTL_S,
    CloseSession,
    Leased,
    Looked,
    Method,
    OpenSession,
    ReadScreenshot,
    ReadTree,
    RenewSession,
    Reply,
    RunStep,
    SeenPicture,
    SeenTree,
    StepRan,
    TakeLook,
)
from droidfleet_shared.errors import InvalidInputError, UnavailableError
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.screen.snapshot import Snapshot

log = structlog.get_logger(__name__)

ANSWER_S = 5.0
"""For an answer that needs no phone, and beyond what the phone may take."""

MAX_HOLDER = 200
MAX_REQUEST_ID = 64

ReplyT = TypeVar("ReplyT", bound=Reply)


class Live:
    """The live requests.

    Every method raises `NotFoundError` (``DEVICE_NOT_FOUND``), `UnavailableError` (``DEVICE_OFFLINE`` and what the
    phone's driver says) and what the agent answers: ``DEVICE_BUSY``, ``LEASE_LOST``, ``INVALID_STEP``.
    """

    def __init__(self, *, registry: Registry, bus: Bus) -> None:
        self._registry = registry
        self._bus = bus

    async def tree(self, device: str, *, with_xml: bool) -> SeenTree:
        """What the active window shows."""
        return await self._ask(device, Method.TREE, ReadTree(raw=with_xml), SeenTree, timeout_s=MAX_READ_S)

    async def look(self, device: str) -> Snapshot:
        """What the active window shows, as a value on which selectors can be matched.

        Raises:
            UnavailableError: also ``SCREEN_TOO_LARGE`` and ``SCREEN_UNREADABLE``.
        """
        looked = await self._ask(device, Method.LOOK, TakeLook(), Looked, timeout_s=MAX_READ_S)
        if looked.snapshot is None:
            raise _bad_answer(device)
        return looked.snapshot

    async def screenshot(self, device: str) -> SeenPicture:
        """A picture of the display."""
        return await self._ask(device, Method.SCREENSHOT, ReadScreenshot(), SeenPicture, timeout_s=MAX_READ_S)

    async def open(self, device: str, *, holder: str, ttl_s: float) -> Leased:
        """Asks for a session."""
        if not 1 <= len(holder.strip()) <= MAX_HOLDER:
            raise InvalidInputError("BAD_HOLDER", f"holder: 1 to {MAX_HOLDER} characters that say who asks.")
        if not MIN_TTL_S <= ttl_s <= MAX_TTL_S:
            raise InvalidInputError("BAD_TTL", f"ttl: {MIN_TTL_S:g} to {MAX_TTL_S:g} seconds, not {ttl_s:g}.")
        leased = await self._ask(device, Method.OPEN, OpenSession(holder=holder, ttl_s=ttl_s), Leased)
        log.info("session_opened", device=device, holder=holder)
        return leased

    async def renew(self, device: str, session_id: str) -> Leased:
        """Keeps a session open."""
        return await self._ask(device, Method.RENEW, RenewSession(lease_id=session_id), Leased)

    async def close(self, device: str, session_id: str) -> None:
        """Ends a session."""
        await self._ask(device, Method.CLOSE, CloseSession(lease_id=session_id), Leased)

    async def step(self, device: str, session_id: str, *, step: str, request_id: str) -> TaskResult:
        """Runs one step, once for each ``request_id``.

        Raises:
            UnavailableError: also ``OUTCOME_UNKNOWN``: no answer came, and the step may have been run.
        """
        if not 1 <= len(request_id) <= MAX_REQUEST_ID:
            raise InvalidInputError("BAD_REQUEST_ID", f"request_id: at most {MAX_REQUEST_ID} characters.")
        request = RunStep(lease_id=session_id, request_id=request_id, step=step)
        ran = await self._ask(device, Method.STEP, request, StepRan, timeout_s=MAX_STEP_S)
        if ran.result is None:
            raise _bad_answer(device)
        log.info("live_step_ran", device=device, code=ran.result.code)
        return ran.result

    async def _ask(
        self, device: str, method: Method, request: Message, answer: type[ReplyT], *, timeout_s: float = 0.0
    ) -> ReplyT:
        self._require_online(device)
        acts = method is Method.STEP
        connected = self._bus.connected
        try:
            message = await self._bus.request(
                subjects.rpc(device, method), request.encode(), timeout_s=timeout_s + ANSWER_S
            )
        except NoRespondersError:
            raise _offline(device, "its agent does not listen; it may be starting, ending, or too old") from None
        except PayloadTooLargeError as error:
            raise InvalidInputError("TOO_LARGE", error.message) from error
        except BusUnavailableError as error:
            if acts and connected:
                raise UnavailableError(
                    "OUTCOME_UNKNOWN",
                    f"{device}: no answer came, and the step may have been run ({error.message})",
                    hint="Ask again with the same request_id: it is run once. Or look at the phone.",
                ) from error
            raise _offline(device, f"no answer came ({error.message.rstrip('.')})") from error
        try:
            # The fault first: an answer of another kind has no more than that.
            Reply.decode(message.data).checked()
            return answer.decode(message.data)
        except BadMessageError as error:
            raise _bad_answer(device) from error

    def _require_online(self, device: str) -> None:
        state = self._registry.state(self._registry.get(device))
        if state is DeviceState.OFFLINE:
            raise _offline(device, "its agent has not been heard for three heartbeats")
        if state is DeviceState.PHONE_OFFLINE:
            raise _offline(device, "its agent is there, and its phone is not attached or not authorized")


def _offline(device: str, why: str) -> UnavailableError:
    return UnavailableError(
        "DEVICE_OFFLINE", f"{device} does not answer: {why}.", hint="See it with: droidfleet devices"
    )


def _bad_answer(device: str) -> UnavailableError:
    return UnavailableError(
        "BAD_ANSWER", f"the agent of {device} answered with something else.", hint="Upgrade the older of the two."
    )
