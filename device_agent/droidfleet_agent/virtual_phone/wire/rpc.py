"""JSON-RPC 2.0 as the phone's automation server (jsonrpc4j) speaks it: envelope, parameters, errors. No phone here."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
EXCEPTION = -32001
"""An exception within a method: ``message`` is then its Java class, ``data`` its text."""

MAX_WAIT_MS = 600_000
"""No wait of a client is longer: adbutils gives up after ten minutes."""

Selector = Mapping[str, object]
Target = Selector | str
"""What an object method is about: a selector, or the handle of an object found before."""


class RpcError(Exception):
    """An error answer. ``message`` and ``data`` are what the clients look into."""

    def __init__(self, code: int, message: str, data: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def java_exception(name: str, text: str) -> RpcError:
    """What the server answers when a method threw."""
    return RpcError(EXCEPTION, name, f"{name}: {text}")


def object_not_found(target: object) -> RpcError:
    """No object matches. The client tells it by the class's name."""
    return java_exception("androidx.test.uiautomator.UiObjectNotFoundException", _short(target))


def stale_object() -> RpcError:
    """The object found has left the tree."""
    return java_exception("androidx.test.uiautomator.StaleObjectException", "object is no longer in the tree")


def not_connected() -> RpcError:
    """Android took the automation connection away; only a restart of the server helps."""
    return java_exception("java.lang.IllegalStateException", "UiAutomation not connected!")


def dead_object() -> RpcError:
    """The other side of a binder call died."""
    return java_exception("android.os.DeadObjectException", "system server died")


@dataclass(frozen=True, slots=True)
class Wait:
    """The result of a method that blocks: true once ``condition`` holds, false when ``seconds`` are over."""

    condition: Callable[[], bool]
    seconds: float


def until(condition: Callable[[], bool], seconds: float) -> bool | Wait:
    """True at once when the condition holds already, which most often it does."""
    return condition() or Wait(condition, seconds)


class Params:
    """The positional parameters of one call, read with types. Raises `RpcError` (-32602)."""

    __slots__ = ("_values",)

    def __init__(self, values: object) -> None:
        # A call without arguments carries `{}`.
        self._values: list[object] = values if isinstance(values, list) else []

    def __len__(self) -> int:
        return len(self._values)

    def value(self, position: int) -> object:
        """The raw value; None when it is not there."""
        return self._values[position] if position < len(self._values) else None

    def number(self, position: int, default: float | None = None) -> float:
        """A JSON number. Without one: the default, or an error."""
        value = self.value(position)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(position, "a number")
        return value

    def integer(self, position: int, default: int | None = None) -> int:
        """A number, cut to an integer as Java does."""
        number = self.number(position, default)
        if not math.isfinite(number):
            raise self._wrong(position, "a finite number")
        return int(number)

    def text(self, position: int, default: str | None = None) -> str:
        """A string."""
        value = self.value(position)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self._wrong(position, "a string")
        return value

    def boolean(self, position: int, default: bool | None = None) -> bool:
        """True or false."""
        value = self.value(position)
        if value is None and default is not None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(position, "a boolean")
        return value

    def selector(self, position: int) -> Selector:
        """A selector object."""
        value = self.value(position)
        if not isinstance(value, dict):
            raise self._wrong(position, "a selector")
        return value

    def target(self, position: int) -> Target:
        """A selector object or a handle."""
        value = self.value(position)
        if not isinstance(value, dict | str):
            raise self._wrong(position, "a selector or a handle")
        return value

    def numbers(self, position: int) -> list[float]:
        """A list of numbers."""
        value = self.value(position)
        if not isinstance(value, list) or not all(isinstance(item, int | float) for item in value):
            raise self._wrong(position, "a list of numbers")
        return value

    def seconds(self, position: int, default_ms: int) -> float:
        """A time to wait, given in milliseconds."""
        return max(0.0, min(self.number(position, default_ms), MAX_WAIT_MS)) / 1_000.0

    @staticmethod
    def _wrong(position: int, expected: str) -> RpcError:
        return RpcError(INVALID_PARAMS, "method parameters invalid", f"parameter {position} is not {expected}")


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """One call."""

    id: object
    method: str
    params: Params


def read_request(body: bytes) -> RpcRequest:
    """Reads a request body. Raises `RpcError`."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, "JSON parse error", str(error)) from error
    if not isinstance(document, dict) or not isinstance(method := document.get("method"), str):
        raise RpcError(INVALID_REQUEST, "Invalid Request")
    return RpcRequest(document.get("id"), method, Params(document.get("params")))


def result_body(request_id: object, result: object) -> bytes:
    """The body of a good answer."""
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode()


def error_body(request_id: object, error: RpcError) -> bytes:
    """The body of an error answer; its HTTP status is 200 all the same."""
    inner = {"code": error.code, "message": error.message, "data": error.data}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": inner}).encode()


_SHOWN: Final = 500


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
