"""What can go wrong between us and an adb server, as one error with stable codes, and adb's own words for it.

Pure: knows texts and codes, never a socket.
"""

from __future__ import annotations

from enum import StrEnum

from droidfleet_shared.errors import UnavailableError


class AdbProblem(StrEnum):
    """The codes of `AdbError`."""

    ADB_NOT_INSTALLED = "ADB_NOT_INSTALLED"
    ADB_UNREACHABLE = "ADB_UNREACHABLE"
    ADB_SILENT = "ADB_SILENT"
    ADB_REFUSED = "ADB_REFUSED"
    DEVICE_NOT_FOUND = "DEVICE_NOT_FOUND"
    DEVICE_OFFLINE = "DEVICE_OFFLINE"
    DEVICE_UNAUTHORIZED = "DEVICE_UNAUTHORIZED"
    STREAM_REFUSED = "STREAM_REFUSED"
    STREAM_CUT = "STREAM_CUT"


HINTS = {
    AdbProblem.ADB_NOT_INSTALLED: "Install Android platform-tools, or point ADBUTILS_ADB_PATH at an adb binary.",
    AdbProblem.ADB_UNREACHABLE: "Run `adb start-server`; check ANDROID_ADB_SERVER_HOST and ANDROID_ADB_SERVER_PORT.",
    AdbProblem.ADB_SILENT: "Look at `adb devices`; `adb kill-server` clears a stuck server.",
    AdbProblem.ADB_REFUSED: "",
    AdbProblem.DEVICE_NOT_FOUND: "Look at `adb devices`; plug the phone in, or `adb connect` it.",
    AdbProblem.DEVICE_OFFLINE: "Check the cable or the network; the phone is used again as soon as adb sees it online.",
    AdbProblem.DEVICE_UNAUTHORIZED: "Unlock the phone and accept this computer's USB debugging key.",
    AdbProblem.STREAM_REFUSED: "",
    AdbProblem.STREAM_CUT: "",
}


class AdbError(UnavailableError):
    """The adb server, or the phone behind it, did not do what was asked. ``code`` is an `AdbProblem`."""

    def __init__(self, problem: AdbProblem, message: str) -> None:
        super().__init__(problem, message, hint=HINTS[problem])
        self.problem = problem


def refusal(serial: str, text: str) -> AdbError:
    """The error for the text of a ``FAIL`` answer. ``serial`` is empty for requests about no phone."""
    return AdbError(_problem(text), f"adb: {text or 'refused without a reason'}" + (f" ({serial})" if serial else ""))


def _problem(text: str) -> AdbProblem:
    # The texts of adb's transport.cpp, the same from 29 to 36; the phone's own refusal of a stream is "closed".
    if text.startswith("device '") and text.endswith("not found"):
        return AdbProblem.DEVICE_NOT_FOUND
    if text.startswith(("device offline", "device still connecting")):
        return AdbProblem.DEVICE_OFFLINE
    if text.startswith(("device unauthorized", "device still authorizing")):
        return AdbProblem.DEVICE_UNAUTHORIZED
    if text == "closed":
        return AdbProblem.STREAM_REFUSED
    return AdbProblem.ADB_REFUSED


def device_error(serial: str, word: str) -> AdbError:
    """The error for a phone whose state in adb's list is not ``device``."""
    problem = _STATES.get(word, AdbProblem.DEVICE_OFFLINE)
    return AdbError(problem, f"adb lists {serial} as {word}")


_STATES = {
    "absent": AdbProblem.DEVICE_NOT_FOUND,
    "unauthorized": AdbProblem.DEVICE_UNAUTHORIZED,
    "authorizing": AdbProblem.DEVICE_UNAUTHORIZED,
}
