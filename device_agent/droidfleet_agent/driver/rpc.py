"""JSON-RPC 2.0 as the uiautomator2 server speaks it, and what its errors say about whether an action happened. Pure.

Wire facts: docs of openatx/android-uiautomator-jsonrpcserver; errors carry the Java exception's class in ``message``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from droidfleet_agent.driver.http import Answer
from droidfleet_shared.errors import UnavailableError

RPC_PATH = "/jsonrpc/0"
HTTP_OK = 200

METHOD_NOT_FOUND = -32601
NOT_CONNECTED = "UiAutomation not connected"
"""Android's text when the server's UiAutomation is gone: thrown before anything is injected."""

_NO_OBJECT = "UiObjectNotFoundException"
_NOT_DONE = (_NO_OBJECT, "StaleObjectException", NOT_CONNECTED)
"""Thrown while the target is looked up, before it is touched."""

_BROKEN = (NOT_CONNECTED, "DeadObjectException", "DeadSystemRuntimeException")
"""The server answers and will not work again until it is started anew (the stock client restarts on the same)."""

Json = None | bool | int | float | str | Sequence["Json"] | dict[str, "Json"]


class RpcError(UnavailableError):
    """The server answered with an error, or with something that is no answer.

    ``not_done``: the method certainly had no effect. ``no_object``: because nothing matched its selector. ``broken``:
    the server needs a restart.
    """

    def __init__(self, message: str, *, not_done: bool = False, no_object: bool = False, broken: bool = False) -> None:
        super().__init__("AUTOMATION_ERROR", message)
        self.not_done = not_done
        self.no_object = no_object
        self.broken = broken


def encode_call(call_id: int, method: str, params: Sequence[Json]) -> bytes:
    """The body of a call. ASCII: the server's HTTP library takes a body without a charset for ASCII."""
    return json.dumps({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}).encode()


def decode_result(call_id: int, answer: Answer) -> Json:
    """The result of the call of that id.

    Raises:
        RpcError: an HTTP status other than 200, no JSON-RPC answer, another call's answer, or the method's error.
    """
    if answer.status != HTTP_OK:
        raise RpcError(f"HTTP status {answer.status}", broken=True)
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise RpcError(f"the answer is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise RpcError("the answer is no JSON-RPC answer")
    failure = document.get("error")
    if document.get("id") != call_id:
        # Its error tells nothing certain about our call, but may tell that the server is done for.
        raise RpcError("the answer is not that of this call", broken=failure is not None and _failure(failure).broken)
    if failure is not None:
        raise _failure(failure)
    if "result" not in document:
        raise RpcError("the answer holds neither a result nor an error")
    return document["result"]  # type: ignore[no-any-return]  # json.loads makes nothing but Json


def _failure(error: object) -> RpcError:
    fields = error if isinstance(error, dict) else {"message": str(error)}
    message = str(fields.get("message") or "")
    text = f"{message}\n{fields.get('data') or ''}"
    return RpcError(
        f"{fields.get('code', '')} {message}".strip(),
        not_done=fields.get("code") == METHOD_NOT_FOUND or any(word in text for word in _NOT_DONE),
        no_object=_NO_OBJECT in message,
        broken=any(word in text for word in _BROKEN),
    )
