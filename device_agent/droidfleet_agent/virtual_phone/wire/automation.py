"""The automation server on the phone (u2.jar): its life, and how each request is carried out.

It lives as long as somebody runs it (`AutomationServer.run`, for the shell's `app_process`) and dies with its shell
stream, on `/stop`, or by a fault; its streams and unanswered calls die with it. A call that costs no time and meets no
fault is answered at once, without a task; that is what keeps a call under a millisecond.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

import structlog

from droidfleet_agent.virtual_phone import calls
from droidfleet_agent.virtual_phone.calls import Call, CallKind
from droidfleet_agent.virtual_phone.faults import Fault, FaultKind, FaultPlan
from droidfleet_agent.virtual_phone.latency import LatencyProfile
from droidfleet_agent.virtual_phone.model.touch import LONG_PRESS_MS
from droidfleet_agent.virtual_phone.phone import VirtualPhone
from droidfleet_agent.virtual_phone.selectors import SelectorError
from droidfleet_agent.virtual_phone.wire import damage, rpc
from droidfleet_agent.virtual_phone.wire.http import TEXT, Answer, Handler, HttpService, Request
from droidfleet_agent.virtual_phone.wire.rpc import RpcError, RpcRequest, Wait
from droidfleet_agent.virtual_phone.wire.rpc_device import (
    DEFAULT_CONFIGURATOR,
    DEFAULT_JPEG_QUALITY,
    DEVICE_METHODS,
    DeviceMethods,
    Touches,
)
from droidfleet_agent.virtual_phone.wire.rpc_objects import OBJECT_METHODS, Objects
from droidfleet_agent.virtual_phone.wire.tasks import Spawn

POLL_S = 0.05
"""How often a waiting method looks again, seconds."""

MAX_CALLS = 256
"""Calls under way at once; more end their stream. A client has one at a time, and a few that it gave up."""

STEP_MS = 5.0
"""UiAutomator throttles a swipe to five milliseconds a step."""

log = structlog.get_logger(__name__)

Work = Callable[[], object]


class AutomationServer(Handler):
    """One phone's automation server. ``spawn`` starts an owned task; ``go_offline`` takes the phone off the network."""

    def __init__(
        self,
        phone: VirtualPhone,
        *,
        faults: FaultPlan,
        latency: LatencyProfile,
        lock: asyncio.Lock,
        spawn: Spawn,
        go_offline: Callable[[float], None],
        run_shell: Callable[[str], Awaitable[str]],
    ) -> None:
        self._phone = phone
        self._faults = faults
        self._latency = latency
        self._lock = lock
        self._spawn = spawn
        self._go_offline = go_offline
        self._run_shell = run_shell
        self._objects = Objects(phone)
        self._device = DeviceMethods(phone, Touches(phone), dict(DEFAULT_CONFIGURATOR))
        self._seen_window_changes = -1
        self._services: set[HttpService] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._died: asyncio.Event | None = None
        self.port: int | None = None
        """The device port it listens on; None while it does not."""

    # -- life

    @property
    def running(self) -> bool:
        """Whether its process exists; it need not listen yet."""
        return self._died is not None

    async def run(self, port: int, *, start_s: float) -> None:
        """The life of its process: returns when it dies. Cancelling kills it. One at a time (see `running`)."""
        died = self._died = asyncio.Event()
        try:
            await self._phone.clock.sleep(start_s)
            if not died.is_set():
                self.port = port
                await died.wait()
        finally:
            if self._died is died:  # not the life of a successor
                self.kill()

    def kill(self) -> None:
        """It is gone at once: its streams close and what it was about to answer is never answered."""
        self.port = None
        if self._died is not None:
            self._died.set()
            self._died = None
        for task in list(self._tasks):
            task.cancel()
        for service in list(self._services):
            service.abort()

    def joined(self, service: HttpService) -> None:
        self._services.add(service)

    def left(self, service: HttpService) -> None:
        self._services.discard(service)

    # -- requests

    def handle(self, request: Request, exchange: HttpService) -> None:
        """Answers one request, now or later."""
        path = request.target.partition("?")[0]
        if path == "/jsonrpc/0" and request.method == "POST":
            self._on_rpc(request.body, exchange)
        elif request.method != "GET":
            exchange.answer(_not_found())
        elif path == "/ping":
            self._begin(_Job(calls.PING, exchange, lambda: Answer(b"pong", TEXT)))
        elif path == "/screenshot/0":
            self._begin(_Job(calls.HTTP_SCREENSHOT, exchange, lambda: self._screenshot(request.target)))
        elif path == "/stop":
            exchange.answer(Answer(b"Finished!", TEXT))
            # After the answer is on its way: the server says goodbye before it goes.
            asyncio.get_running_loop().call_soon(self.kill)
        else:
            exchange.answer(_not_found())

    def _on_rpc(self, body: bytes, exchange: HttpService) -> None:
        try:
            request = rpc.read_request(body)
        except RpcError as error:
            exchange.answer(Answer(rpc.error_body(None, error)))
            return
        call = calls.RPC_CALLS.get(request.method, calls.UNKNOWN_RPC)
        if self._faults.active and request.method in calls.FIRST_TAPS:
            call = self._as_first_tap(call)
        self._begin(_Job(call, exchange, lambda: self._method(request), request))

    def _begin(self, job: _Job) -> None:
        fault = self._faults.take(job.call) if self._faults.active else None
        delay_s = self._delay_s(job)
        # A picture takes tens of milliseconds to paint: it is made in a thread, so that other phones go on meanwhile.
        if fault is None and not delay_s and job.call.kind is not CallKind.SCREENSHOT and not self._lock.locked():
            result = self._guarded(job.work)
            if isinstance(result, Wait | _ShellCommand):
                self._finish_later(dataclasses.replace(job, work=lambda: result), None, 0.0)
            else:
                job.answer(result)
        elif fault is None or fault.do is not FaultKind.HANG or fault.after:
            self._finish_later(job, fault, delay_s)

    def _delay_s(self, job: _Job) -> float:
        gesture_ms = _gesture_ms(job.request) if job.request is not None and self._latency.real_gestures else 0.0
        return self._latency.seconds(job.call.kind, gesture_ms=gesture_ms)

    def _finish_later(self, job: _Job, fault: Fault | None, delay_s: float) -> None:
        if len(self._tasks) >= MAX_CALLS:
            log.warning("too_many_calls", calls=MAX_CALLS)
            job.exchange.abort()
            return
        task = self._spawn(self._finish(job, fault, delay_s), f"call-{job.call.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, job: _Job, fault: Fault | None, delay_s: float) -> None:
        if fault is not None and fault.do is FaultKind.SLOW:
            delay_s += fault.seconds or 0.0
        if delay_s:
            await self._phone.clock.sleep(delay_s)
        if fault is not None and not fault.after:
            if self._strike(fault, job.exchange):
                return
            instead = _instead(fault)
            if instead is not None:
                job.answer(instead)
                return
        result = await self._run(job.call, job.work)
        if isinstance(result, Wait):
            result = await self._wait(result)
        elif isinstance(result, _ShellCommand):
            result = await self._run_shell(result.command)
        if fault is None:
            job.answer(result)
        elif not (fault.after and self._strike(fault, job.exchange)):
            job.answer(_damaged(fault, result), cut=fault.do is FaultKind.CUT_ANSWER)

    async def _run(self, call: Call, work: Work) -> object:
        async with self._lock:
            if call.kind is CallKind.SCREENSHOT:
                return await asyncio.to_thread(self._guarded, work)
            return self._guarded(work)

    async def _wait(self, wait: Wait) -> object:
        clock = self._phone.clock
        deadline = clock.deadline(wait.seconds)
        while True:
            async with self._lock:
                met = self._guarded(wait.condition)
            if met is not False or deadline.passed:
                return met
            await clock.sleep(min(POLL_S, deadline.remaining()))

    # -- faults

    def _strike(self, fault: Fault, exchange: HttpService) -> bool:
        """Carries out a fault of the connection or the phone. True: there will be no answer."""
        match fault.do:
            case FaultKind.HANG:
                pass
            case FaultKind.DROP:
                exchange.abort()
            case FaultKind.KILL_SERVER:
                # Not from within the call's own task: killing cancels it.
                asyncio.get_running_loop().call_soon(self.kill)
            case FaultKind.OFFLINE:
                self._go_offline(fault.seconds or 0.0)
            case FaultKind.SWALLOW:
                self._phone.knobs.swallow_taps += 1
                return False
            case FaultKind.MOVE:
                self._phone.knobs.moving_looks += 1
                self._phone.knobs.moving_px = fault.pixels
                return False
            case FaultKind.LOSE_CHARACTER:
                self._phone.knobs.lossy_set_texts += 1
                return False
            case _:
                return False
        return True

    def _as_first_tap(self, call: Call) -> Call:
        changes = self._phone.window_changes
        first, self._seen_window_changes = changes != self._seen_window_changes, changes
        return calls.FIRST_TAPS[call.name] if first else call

    # -- the phone

    def _guarded(self, work: Work) -> object:
        """The result of ``work``, or the error that it raised; never an exception: a client must get an answer."""
        try:
            self._phone.tick()
            return work()
        except RpcError as error:
            return error
        except SelectorError as error:
            return rpc.java_exception("java.lang.IllegalArgumentException", error.message)
        except Exception as error:  # a defect of the model must look like one of the server, not like a hang
            log.exception("call_failed")
            return rpc.java_exception("java.lang.RuntimeException", repr(error))

    def _method(self, request: RpcRequest) -> object:
        params = request.params
        if isinstance(params.value(0), dict | str) and (of_object := OBJECT_METHODS.get(request.method)) is not None:
            return of_object(self._objects, params)
        if (of_device := DEVICE_METHODS.get(request.method)) is not None:
            return of_device(self._device, params)
        if (of_object := OBJECT_METHODS.get(request.method)) is not None:
            return of_object(self._objects, params)  # says which parameter is missing
        if request.method == "executeShellCommand":
            return _ShellCommand(params.text(0))
        raise RpcError(rpc.METHOD_NOT_FOUND, "method not found", request.method)

    def _screenshot(self, target: str) -> object:
        query = parse_qs(urlsplit(target).query)
        try:
            scale = float(query.get("scale", ["1"])[0])
            quality = int(query.get("quality", [str(DEFAULT_JPEG_QUALITY)])[0])
        except ValueError:
            return Answer(b"scale and quality are numbers", TEXT, HTTPStatus.BAD_REQUEST)
        return Answer(self._phone.screenshot(media="JPEG", quality=quality, scale=scale), b"image/jpeg")


class _ShellCommand:
    """The result of `executeShellCommand`: what is still to be run."""

    def __init__(self, command: str) -> None:
        self.command = command


@dataclass(frozen=True, slots=True)
class _Job:
    """One request on its way: what call it is, who gets the answer, and what is to be done."""

    call: Call
    exchange: HttpService
    work: Work
    request: RpcRequest | None = None

    def answer(self, result: object, *, cut: bool = False) -> None:
        """Sends a result: an `Answer` as it is, everything else as JSON-RPC."""
        request_id = self.request.id if self.request is not None else None
        if isinstance(result, Answer):
            answer = result
        elif isinstance(result, RpcError):
            answer = Answer(rpc.error_body(request_id, result))
        else:
            answer = Answer(rpc.result_body(request_id, result))
        self.exchange.answer(dataclasses.replace(answer, cut=True) if cut else answer)


_INSTEAD: Mapping[FaultKind, Callable[[], object]] = MappingProxyType(
    {
        FaultKind.HTTP_ERROR: lambda: Answer(b"Internal Error", TEXT, HTTPStatus.INTERNAL_SERVER_ERROR),
        FaultKind.NOT_CONNECTED: rpc.not_connected,
        FaultKind.DEAD_OBJECT: rpc.dead_object,
        FaultKind.STALE: rpc.stale_object,
        FaultKind.NOT_FOUND: lambda: rpc.object_not_found("an object that has gone"),
        FaultKind.FALSE: lambda: False,
    }
)


def _instead(fault: Fault) -> object | None:
    """What is answered instead of carrying the call out; None when it is carried out."""
    make = _INSTEAD.get(fault.do)
    return make() if make is not None else None


def _damaged(fault: Fault, result: object) -> object:
    if not isinstance(result, str):
        return result
    if fault.do is FaultKind.CUT:
        return damage.cut(result)
    return damage.repeat_attribute(result) if fault.do is FaultKind.REPEAT_ATTRIBUTE else result


def _gesture_ms(request: RpcRequest) -> float:
    """The time that a gesture itself takes; 0 for everything else, and for parameters that will be refused."""
    params = request.params
    try:
        match request.method:
            case "click" if len(params) >= 3:
                return params.number(2)
            case "swipe" if len(params) == 5:
                return params.number(4) * STEP_MS
            case "drag" if len(params) == 5:
                return LONG_PRESS_MS + params.number(4) * STEP_MS
            case "swipePoints":
                return params.number(1) * STEP_MS * max(0, len(params.numbers(0)) // 2 - 1)
            case _:
                return 0.0
    except RpcError:
        return 0.0


def _not_found() -> Answer:
    return Answer(b"Not Found", TEXT, HTTPStatus.NOT_FOUND)
