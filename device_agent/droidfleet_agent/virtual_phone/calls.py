"""The calls that a virtual phone meets, as data: their names, what each costs and whether it changes the phone.

Faults and latency are stated in these words; the wire looks its calls up here and carries them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class CallKind(StrEnum):
    """What a call costs the phone. Each has one delay in a latency profile."""

    DUMP = "dump"
    SCREENSHOT = "screenshot"
    QUERY = "query"
    TAP = "tap"
    TEXT = "text"
    KEY = "key"
    SHELL = "shell"
    SERVER_START = "server_start"
    PING = "ping"


class Place(StrEnum):
    """Where in the wire a call is met."""

    CONNECT = "connect"
    OPEN = "open"
    SHELL = "shell"
    SERVER_START = "server_start"
    HTTP = "http"
    RPC = "rpc"


GROUPS: Mapping[str, tuple[Place, str]] = MappingProxyType(
    {
        "connect": (Place.CONNECT, "an adb server says hello"),
        "open": (Place.OPEN, "any stream is opened"),
        "tcp": (Place.OPEN, "a stream to the automation server is opened"),
        "sync": (Place.OPEN, "a file transfer stream is opened"),
        "shell_stream": (Place.OPEN, "a shell stream is opened"),
        "shell": (Place.SHELL, "any shell command is run (`shell:TEXT`: command lines that begin with TEXT)"),
        "server_start": (Place.SERVER_START, "the automation server is started"),
        "http": (Place.HTTP, "any request to the automation server, `/ping` too"),
        "ping": (Place.HTTP, "`GET /ping`"),
        "rpc": (Place.RPC, "any JSON-RPC call"),
        "read": (Place.RPC, "any JSON-RPC call that changes nothing"),
        "action": (Place.RPC, "any JSON-RPC call that touches the phone"),
        "tap": (Place.RPC, "any tap by JSON-RPC"),
        "first_tap": (Place.RPC, "the first tap after a window or page came to the front"),
    }
)
"""Names, beside those of JSON-RPC methods, that calls answer to."""

SHELL_PREFIX = "shell:"
"""``shell:dumpsys window`` means command lines that begin so."""


@dataclass(frozen=True, slots=True)
class Call:
    """One sort of call: its own name, every name it answers to, and what it costs."""

    name: str
    names: frozenset[str]
    kind: CallKind


CONNECT = Call("connect", frozenset({"connect"}), CallKind.PING)
OPEN_TCP = Call("tcp", frozenset({"open", "tcp"}), CallKind.PING)
OPEN_SYNC = Call("sync", frozenset({"open", "sync"}), CallKind.PING)
OPEN_SHELL = Call("shell_stream", frozenset({"open", "shell_stream"}), CallKind.PING)
OPEN_OTHER = Call("open", frozenset({"open"}), CallKind.PING)
SHELL = Call("shell", frozenset({"shell"}), CallKind.SHELL)
SERVER_START = Call("server_start", frozenset({"server_start"}), CallKind.SERVER_START)
PING = Call("ping", frozenset({"http", "ping"}), CallKind.PING)
HTTP_SCREENSHOT = Call("http", frozenset({"http"}), CallKind.SCREENSHOT)

_READS = {
    CallKind.DUMP: ["dumpWindowHierarchy"],
    CallKind.SCREENSHOT: ["takeScreenshot"],
    CallKind.PING: ["ping", "getConfigurator", "setConfigurator", "getLastTraversedText", "clearLastTraversedText"],
    CallKind.QUERY: [
        "deviceInfo",
        "isScreenOn",
        "exist",
        "count",
        "objInfo",
        "objInfoOfAllInstances",
        "waitForExists",
        "waitUntilGone",
        "waitForIdle",
        "waitForWindowUpdate",
        "getText",
        "getClipboard",
        "getLastToast",
        "clearLastToast",
        "childByText",
        "childByDescription",
        "childByInstance",
        "getUiObject",
        "getChild",
        "getFromParent",
    ],
}
_TAPS = ["click", "longClick"]
_ACTIONS = {
    CallKind.TAP: [
        "injectInputEvent",
        "swipe",
        "swipePoints",
        "drag",
        "dragTo",
        "gesture",
        "pinchIn",
        "pinchOut",
        "flingForward",
        "flingBackward",
        "flingToBeginning",
        "flingToEnd",
        "scrollForward",
        "scrollBackward",
        "scrollToBeginning",
        "scrollToEnd",
        "scrollTo",
    ],
    CallKind.TEXT: ["setText", "clearTextField", "clearInputText", "setClipboard", "pasteClipboard"],
    CallKind.KEY: [
        "pressKey",
        "pressKeyCode",
        "wakeUp",
        "sleep",
        "freezeRotation",
        "setOrientation",
        "openNotification",
        "openQuickSettings",
    ],
    CallKind.SHELL: ["executeShellCommand", "launchApp"],
}


def _rpc_calls() -> dict[str, Call]:
    shared = frozenset({"rpc", "http"})
    calls = {n: Call(n, shared | {n, "read"}, kind) for kind, names in _READS.items() for n in names}
    calls |= {n: Call(n, shared | {n, "action"}, kind) for kind, names in _ACTIONS.items() for n in names}
    calls |= {n: Call(n, shared | {n, "action", "tap"}, CallKind.TAP) for n in _TAPS}
    return calls


RPC_CALLS: Mapping[str, Call] = MappingProxyType(_rpc_calls())
"""Every JSON-RPC method of the automation server, by name."""

FIRST_TAPS: Mapping[str, Call] = MappingProxyType(
    {n: Call(n, RPC_CALLS[n].names | {"first_tap"}, CallKind.TAP) for n in _TAPS}
)
"""The taps as they are called when they are the first since a window or page came to the front."""

UNKNOWN_RPC = Call("rpc", frozenset({"rpc", "http"}), CallKind.PING)
