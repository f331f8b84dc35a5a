"""Answers the live requests of one agent: ``message -> lease -> engine or look -> message``.

A lease and an execution exclude each other. While an execution runs no lease is given; while a lease is held no
execution begins, and one that is assigned waits for its end. Looking disturbs neither: the phone takes one call at a
time. A step runs through the engine as in any task, is bounded, and is run once for each request id.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, assert_never

import structlog
from pydantic import ValidationError

from droidfleet_agent.driver.port import Phone
from droidfleet_agent.engine.control import RunControl, RunObserver
from droidfleet_agent.engine.look import take_look
from droidfleet_agent.engine.picture import fitting
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.engine.trail import Ended
from droidfleet_agent.session.lease import DeviceBusyError, Lease, Leases
from droidfleet_agent.session.seen import seen_tree
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import MAX_MESSAGE_BYTES, BadMessageError, ExecutionRef
from droidfleet_shared.bus.port import Bus, BusMessage, Unsubscribe
from droidfleet_shared.bus.session import (
    MAX_READ_S,
    MAX_STEP_S,
    CloseSession,
    Fault,
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
    fault_of,
)
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DroidfleetError, ExhaustedError, InvalidInputError, UnavailableError
from droidfleet_shared.protocol.jsontext import parse
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES, Task
from droidfleet_shared.protocol.validate import validate_task
from droidfleet_shared.screen.parse import ScreenUnreadableError
from droidfleet_shared.screen.snapshot import snapshot_of

log = structlog.get_logger(__name__)

TICK_S = 0.5
"""How late the end of a lease is noticed."""

MAX_ASKED = 16
"""Requests that are worked on at a time; a phone answers some a second."""

MAX_REMEMBERED = 16
"""Steps whose answers are kept for a repeated request."""

MAX_PICTURE_BYTES = (MAX_MESSAGE_BYTES - 1024) * 3 // 4
"""In base64 and with the rest of its message it still fits."""

BUSY_READ_S = 5.0
"""A look while an execution runs: should the phone hang, the execution's own calls wait no longer than that for it."""

LIVE_TASK_ID = "live"


class Session:
    """The live session of one agent.

    ``ready``: whether the agent holds its name; nothing is answered before. ``running``: the execution that runs.
    ``changed`` is called when a lease begins or ends.
    """

    def __init__(
        self,
        agent: str,
        *,
        bus: Bus,
        phone: Phone,
        clock: Clock,
        ready: Callable[[], bool],
        running: Callable[[], ExecutionRef | None],
        changed: Callable[[], None],
        new_id: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._agent = agent
        self._bus = bus
        self._phone = phone
        self._clock = clock
        self._ready = ready
        self._running = running
        self._changed = changed
        self._engine = Engine(phone, clock=clock)
        self._leases = Leases(clock, new_id=new_id)
        self._stepping: RunControl | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = ""
        self._ran: OrderedDict[str, asyncio.Future[StepRan]] = OrderedDict()
        self._begun = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._asked = 0

    @property
    def held(self) -> bool:
        """Whether somebody may act on the phone, so that no execution may begin."""
        return self._stepping is not None or self._leases.current is not None

    def subscribe(self) -> Unsubscribe:
        """Listens for requests; the result ends that."""
        return self._bus.subscribe(subjects.rpc(self._agent), self._receive, pending_limit=MAX_ASKED)

    async def run(self) -> None:
        """Works on requests, and notices ends of leases, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                while True:
                    await self._begun.wait()
                    self._begun.clear()
                    while self.held:
                        await self._clock.sleep(TICK_S)
                    log.info("lease_ended", agent=self._agent)
                    self._changed()
            finally:
                self._group = None

    async def stop(self, reason: str) -> None:
        """Gives no more leases, stops a step that is under way where it can be stopped, and returns at its end."""
        self._stopping = reason
        if self._stepping is not None:
            self._stepping.cancel(reason)
        await self._idle.wait()

    async def answer(self, method: str, data: bytes) -> bytes:
        """The answer to one request; an error of any kind is an answer too."""
        try:
            reply = await self._answered(Method(method), data)
        except (ValidationError, ValueError) as error:
            reply = Reply(fault=Fault(kind="invalid", code="BAD_REQUEST", message=f"{method}: {error}"[:500]))
        except ScreenUnreadableError as error:
            reply = Reply(fault=Fault(kind="unavailable", code=error.code, message=error.message, hint="Try again."))
        except BadMessageError as error:
            reply = Reply(fault=Fault(kind="invalid", code=error.code, message=error.message, hint=error.hint))
        except DroidfleetError as error:
            reply = Reply(fault=fault_of(error))
        return reply.encode()

    # Requests.

    async def _receive(self, message: BusMessage) -> None:
        # Before the name is granted another agent may hold it, and answer.
        if not (message.reply and self._ready()) or self._group is None:
            return
        if self._asked >= MAX_ASKED:
            error = ExhaustedError("TOO_MANY_REQUESTS", f"{MAX_ASKED} live requests are being worked on.")
            await self._send(message, Reply(fault=fault_of(error)).encode())
            return
        self._asked += 1
        self._group.create_task(self._work(message), name=f"{message.subject}")

    async def _work(self, message: BusMessage) -> None:
        method = message.subject.rpartition(".")[2]
        try:
            answer = await self.answer(method, message.data)
        except Exception:
            # A defect in one answer must not end the agent.
            log.exception("request_broke", agent=self._agent, method=method)
            answer = Reply(fault=Fault(kind="internal", code="INTERNAL", message="the agent made a mistake.")).encode()
        finally:
            self._asked -= 1
        await self._send(message, answer)

    async def _send(self, message: BusMessage, answer: bytes) -> None:
        try:
            await self._bus.publish(message.reply, answer)
        except DroidfleetError as error:
            log.info("request_unanswered", agent=self._agent, code=error.code)

    async def _answered(self, method: Method, data: bytes) -> Reply:
        match method:
            case Method.OPEN:
                return self._open(OpenSession.decode(data))
            case Method.RENEW:
                return _leased(self._leases.renew(RenewSession.decode(data).lease_id))
            case Method.CLOSE:
                return self._close(CloseSession.decode(data))
            case Method.STEP:
                return await self._step(RunStep.decode(data))
            case Method.TREE | Method.LOOK | Method.SCREENSHOT:
                return await self._seen(method, data)
            case _:
                assert_never(method)

    async def _seen(self, method: Literal[Method.TREE, Method.LOOK, Method.SCREENSHOT], data: bytes) -> Reply:
        match method:
            case Method.TREE:
                return await self._tree(ReadTree.decode(data))
            case Method.LOOK:
                return await self._look(TakeLook.decode(data))
            case Method.SCREENSHOT:
                return await self._screenshot(ReadScreenshot.decode(data))
            case _:
                assert_never(method)

    # The lease.

    def _open(self, request: OpenSession) -> Leased:
        if self._stopping:
            raise UnavailableError("DEVICE_OFFLINE", f"{self._agent}: {self._stopping}")
        running = self._running()
        if running is not None:
            raise DeviceBusyError(
                "DEVICE_BUSY",
                f"the device runs execution {running.execution_id}, until that ends.",
                hint="Wait for it, or cancel it: `droidfleet execution cancel ID`. Looking needs no session.",
            )
        if self._stepping is not None and self._leases.current is None:
            raise DeviceBusyError("DEVICE_BUSY", "the last step of a session that was closed has not ended yet.")
        lease = self._leases.open(request.holder, ttl_s=request.ttl_s)
        log.info("lease_given", agent=self._agent, holder=lease.holder, ttl_s=lease.ttl_s)
        self._begun.set()
        self._changed()
        return _leased(lease)

    def _close(self, request: CloseSession) -> Leased:
        if self._leases.close(request.lease_id):
            if self._stepping is not None:
                self._stepping.cancel("the session was closed.")
            self._changed()
        return Leased()

    # Looking.

    async def _tree(self, request: ReadTree) -> SeenTree:
        deadline = self._clock.deadline(self._read_s(request.timeout_s))
        matcher = await take_look(self._phone, deadline=deadline, with_activity=True)
        xml = await self._phone.dump(deadline=deadline) if request.raw else ""
        return await asyncio.to_thread(seen_tree, matcher, max_bytes=MAX_MESSAGE_BYTES, xml=xml)

    async def _look(self, request: TakeLook) -> Looked:
        deadline = self._clock.deadline(self._read_s(request.timeout_s))
        matcher = await take_look(self._phone, deadline=deadline, with_activity=True)
        looked = Looked(snapshot=await asyncio.to_thread(snapshot_of, matcher.screen))
        if len(looked.encode()) > MAX_MESSAGE_BYTES:
            raise UnavailableError(
                "SCREEN_TOO_LARGE",
                f"the screen's window takes more than the {MAX_MESSAGE_BYTES // 1024} KiB of a message.",
                hint="`droidfleet device tree` shows as much of it as fits.",
            )
        return looked

    async def _screenshot(self, request: ReadScreenshot) -> SeenPicture:
        data = await self._phone.screenshot(deadline=self._clock.deadline(self._read_s(request.timeout_s)))
        picture = await asyncio.to_thread(fitting, data, max_bytes=MAX_PICTURE_BYTES)
        if picture is None:
            raise UnavailableError("SCREEN_UNREADABLE", "the phone sent no picture that can be read.")
        return SeenPicture(
            media_type=picture.media_type,
            data=base64.b64encode(picture.data).decode(),
            width=picture.width,
            height=picture.height,
            scale_percent=picture.scale_percent,
        )

    def _read_s(self, asked_s: float) -> float:
        return min(asked_s, MAX_READ_S if self._running() is None else BUSY_READ_S)

    # Acting.

    async def _step(self, request: RunStep) -> StepRan:
        self._leases.require(request.lease_id)
        known = self._ran.get(request.request_id)
        if known is not None:
            return await asyncio.shield(known)
        if self._stepping is not None:
            raise DeviceBusyError("DEVICE_BUSY", "the session's last step has not ended yet.")
        task = self._task(request.step)
        answer: asyncio.Future[StepRan] = asyncio.get_running_loop().create_future()
        self._ran[request.request_id] = answer
        while len(self._ran) > MAX_REMEMBERED:
            self._ran.popitem(last=False)
        control = self._stepping = RunControl()
        self._idle.clear()
        self._leases.use(request.lease_id)
        try:
            result = await self._engine.run(
                task,
                execution_id=f"live-{request.request_id}",
                agent_name=self._agent,
                observer=_Unobserved(),
                control=control,
            )
        except BaseException:
            # It may have acted before it broke. The id stays taken, so that asking again never acts again.
            answer.set_exception(
                UnavailableError(
                    "OUTCOME_UNKNOWN",
                    "the step broke off, and whether it acted is unknown. It is not repeated.",
                    hint="Look at the phone before doing it again.",
                )
            )
            answer.exception()  # nobody may ask again, and asyncio then calls it forgotten
            raise
        finally:
            self._stepping = None
            self._idle.set()
            self._leases.used(request.lease_id)
        log.info("live_step_ran", agent=self._agent, code=result.code, duration_ms=result.duration_ms)
        ran = _fitting(result)
        answer.set_result(ran)
        return ran

    def _task(self, step: str) -> Task:
        """The task of this one step.

        Raises:
            InvalidInputError: ``INVALID_STEP``, with all that is wrong with it.
        """
        # By the protocol's own reading of JSON, which tells of a key that stands twice.
        parsed = parse(step, max_bytes=MAX_DOCUMENT_BYTES // 2)
        issues = [finding.issue() for finding in parsed.findings]
        if not issues:
            document = {
                "schemaVersion": 1,
                "taskId": LIVE_TASK_ID,
                "assignedAgentName": self._agent,
                "maxDurationMs": round(MAX_STEP_S * 1000),
                "steps": [parsed.value],
            }
            validation = validate_task(json.dumps(document))
            if validation.task is not None:
                return validation.task
            issues = list(validation.errors)
        raise InvalidInputError(
            "INVALID_STEP",
            f"the step is not valid: {len(issues)} error{'s' * (len(issues) != 1)}.",
            hint="A step is an object as in a task's `steps`, where it stands as /steps/0.",
            issues=issues,
        )


class _Unobserved(RunObserver):
    """Nobody follows a live step: its caller waits for the result."""

    async def step_started(self, step_id: str, path: str) -> None:
        pass

    async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
        pass

    async def step_finished(self, ended: Ended) -> None:
        pass


def _leased(lease: Lease) -> Leased:
    return Leased(lease_id=lease.lease_id, expires_in_s=lease.ends.remaining())


def _fitting(result: TaskResult) -> StepRan:
    """The result in one message: without the texts that are kept beside it where there are too many."""
    ran = StepRan(result=result)
    if len(ran.encode()) <= MAX_MESSAGE_BYTES:
        return ran
    steps = tuple(
        step.model_copy(
            update={"artifacts": tuple(each.model_copy(update={"inline": None}) for each in step.artifacts)}
        )
        for step in result.steps
    )
    ran = StepRan(result=result.model_copy(update={"steps": steps}))
    if len(ran.encode()) <= MAX_MESSAGE_BYTES:
        return ran
    return StepRan(result=result.model_copy(update={"steps": steps[-1:], "outputs": {}}))
