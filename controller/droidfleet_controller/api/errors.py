"""From domain errors to gRPC status and metadata, in one interceptor; also where calls are counted and tokens checked.

Trailing metadata: ``droidfleet-code`` (a stable word), ``droidfleet-hint`` (what to do next; in another script than
ASCII it is ``droidfleet-hint-bin``, UTF-8) and, for documents, ``droidfleet-issues-bin`` (JSON, a list of ``path``,
``code``, ``message``, ``hint``).
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import grpc
import structlog
from grpc import aio

from droidfleet_controller.api.metadata import CODE_KEY, HINT_BYTES_KEY, HINT_KEY, ISSUES_KEY
from droidfleet_controller.metrics import Metrics
from droidfleet_shared.errors import DroidfleetError, InvalidInputError, Kind

log = structlog.get_logger(__name__)

_STATUS: dict[Kind, grpc.StatusCode] = {
    "invalid": grpc.StatusCode.INVALID_ARGUMENT,
    "not_found": grpc.StatusCode.NOT_FOUND,
    "conflict": grpc.StatusCode.ALREADY_EXISTS,
    "precondition": grpc.StatusCode.FAILED_PRECONDITION,
    "unavailable": grpc.StatusCode.UNAVAILABLE,
    "denied": grpc.StatusCode.PERMISSION_DENIED,
    "exhausted": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "internal": grpc.StatusCode.INTERNAL,
}

STALE_VERSION = "STALE_VERSION"
"""The code of a change that was made on what is there no more: read it again, and decide again."""

MAX_TEXT_BYTES = 2_000
"""Bytes on the wire of a message or a hint: all of a status has to fit gRPC's default of 8 KiB of metadata."""

MAX_ISSUES_BYTES = 2_500
"""Bytes of the issues: they travel as base64. A call of ValidateTask lists all of them."""

_OPEN = ("/grpc.health.v1.Health/",)
"""What may be asked without a token."""

if TYPE_CHECKING:
    # Generic in the stubs only.
    Handler = grpc.RpcMethodHandler[Any, Any] | None
    Continuation = Callable[[grpc.HandlerCallDetails], Awaitable[Handler]]


class Door(aio.ServerInterceptor):
    """Every call passes here. ``token``: what callers must send as ``authorization: Bearer ...``; None: nothing."""

    def __init__(self, *, metrics: Metrics, token: str | None) -> None:
        self._metrics = metrics
        self._token = token

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler:
        details = handler_call_details
        handler = await continuation(details)
        if handler is None:
            return handler
        method = details.method
        allowed = self._allowed(details)
        if handler.unary_unary:
            return grpc.unary_unary_rpc_method_handler(
                self._unary(handler.unary_unary, method, allowed),
                request_deserializer=handler.request_deserializer,
                response_serializer=handler.response_serializer,
            )
        if handler.unary_stream:
            return grpc.unary_stream_rpc_method_handler(
                self._stream(handler.unary_stream, method, allowed),
                request_deserializer=handler.request_deserializer,
                response_serializer=handler.response_serializer,
            )
        # Reflection alone streams both ways; it holds nothing that the public proto files do not.
        return handler

    def _allowed(self, details: grpc.HandlerCallDetails) -> bool:
        if self._token is None or details.method.startswith(_OPEN):
            return True
        sent = dict(details.invocation_metadata).get("authorization", "")
        return hmac.compare_digest(str(sent).encode(), f"Bearer {self._token}".encode())

    def _unary(self, inner: Callable[..., Any], method: str, allowed: bool) -> Callable[..., Any]:
        name = method.rpartition("/")[2]
        seconds = self._metrics.request_seconds.labels(method=name)

        async def call(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            start = time.perf_counter()
            try:
                await _require(allowed, context)
                answer = await inner(request, context)
            except DroidfleetError as error:
                self._count(name, status_of(error))
                await fail(context, error)
            except aio.AbortError:
                raise
            except Exception as error:
                self._count(name, grpc.StatusCode.INTERNAL)
                await _fail_unexpectedly(context, method, error)
            else:
                self._count(name, grpc.StatusCode.OK)
                return answer
            finally:
                seconds.observe(time.perf_counter() - start)

        return call

    def _stream(self, inner: Callable[..., Any], method: str, allowed: bool) -> Callable[..., Any]:
        name = method.rpartition("/")[2]

        async def call(request: Any, context: aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
            try:
                await _require(allowed, context)
                async for answer in inner(request, context):
                    yield answer
            except DroidfleetError as error:
                self._count(name, status_of(error))
                await fail(context, error)
            except aio.AbortError:
                raise
            except Exception as error:
                self._count(name, grpc.StatusCode.INTERNAL)
                await _fail_unexpectedly(context, method, error)
            else:
                self._count(name, grpc.StatusCode.OK)

        return call

    def _count(self, method: str, status: grpc.StatusCode) -> None:
        self._metrics.requests.labels(method=method, status=status.name).inc()


async def _require(allowed: bool, context: aio.ServicerContext[Any, Any]) -> None:
    if not allowed:
        metadata = (
            (CODE_KEY, "TOKEN_REQUIRED"),
            (HINT_KEY, "Send the token of DROIDFLEET_API_TOKEN_FILE."),
        )
        await context.abort(
            grpc.StatusCode.UNAUTHENTICATED, "TOKEN_REQUIRED: no valid bearer token was sent.", metadata
        )


async def fail(context: aio.ServicerContext[Any, Any], error: DroidfleetError) -> None:
    """Ends a call with the status and the metadata of ``error``."""
    metadata: list[tuple[str, str | bytes]] = [(CODE_KEY, error.code), hint_metadata(error.hint)]
    if isinstance(error, InvalidInputError) and error.issues:
        metadata.append((ISSUES_KEY, issues_json(error.issues)))
    await context.abort(status_of(error), _fitting(f"{error.code}: {error.message}", _percent_encoded), tuple(metadata))


def status_of(error: DroidfleetError) -> grpc.StatusCode:
    """The status of an error: by its kind, but gRPC tells apart what exists already from what changed meanwhile."""
    return grpc.StatusCode.ABORTED if error.code == STALE_VERSION else _STATUS[error.kind]


def issues_json(issues: Sequence[object]) -> bytes:
    """The issues as JSON, as many as fit; a last entry says how many are left out."""
    fitting: list[dict[str, str]] = []
    for index, issue in enumerate(issues):
        entry = {name: str(getattr(issue, name, "")) for name in ("path", "code", "message", "hint")}
        if len(json.dumps([*fitting, entry])) > MAX_ISSUES_BYTES:
            left = len(issues) - index
            fitting.append({"path": "", "code": "MORE", "message": f"and {left} more issue(s)", "hint": ""})
            break
        fitting.append(entry)
    return json.dumps(fitting).encode()


async def _fail_unexpectedly(context: aio.ServicerContext[Any, Any], method: str, error: Exception) -> None:
    log.error("call_failed", method=method, exc_info=error)
    metadata = (
        (CODE_KEY, "INTERNAL"),
        (HINT_KEY, "This is a defect of droidfleet; the controller's log has the details."),
    )
    await context.abort(grpc.StatusCode.INTERNAL, f"INTERNAL: {type(error).__name__}", metadata)


def hint_metadata(hint: str) -> tuple[str, str | bytes]:
    """The hint as one entry of the metadata, whose plain values are printable ASCII only."""
    line = " ".join(hint.split())
    if line.isascii() and line.isprintable():
        return HINT_KEY, line[:MAX_TEXT_BYTES]
    return HINT_BYTES_KEY, _fitting(line, _as_base64).encode(errors="replace")


def _fitting(text: str, size: Callable[[str], int]) -> str:
    """As much of the beginning as ``size`` allows."""
    while size(text) > MAX_TEXT_BYTES:
        text = text[: min(len(text) - 1, len(text) * MAX_TEXT_BYTES // size(text))]
    return text


def _as_base64(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // 3) * 4


def _percent_encoded(text: str) -> int:
    """How gRPC sends a status message: what is not printable ASCII takes three bytes a byte."""
    return sum(1 if 0x20 <= byte < 0x7F and byte != 0x25 else 3 for byte in text.encode(errors="replace"))
