"""Maestro's commands that hold no others, each as steps of protocol v1. Facts about them are from docs.maestro.dev."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from droidfleet_controller.importing.building import Step, time_for, without_gaps
from droidfleet_controller.importing.fields import Fields, meant
from droidfleet_controller.importing.keys import KEY_NAMES, key_step
from droidfleet_controller.importing.maestro_selectors import SELECTOR, Selectors
from droidfleet_controller.importing.maestro_texts import COPIED, Variables
from droidfleet_controller.importing.report import ImportCode, Scope
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.steps.base import MAX_TIMEOUT_MS, MIN_TIMEOUT_MS
from droidfleet_shared.protocol.steps.touching import DEFAULT_INTERVAL_MS, MAX_TIMES
from droidfleet_shared.protocol.wording import name, shown

LOOKUP_MS = 17_000
"""How long Maestro looks for a node."""

OPTIONAL_LOOKUP_MS = 7_000
"""How long it does for an optional one, and to decide a condition."""

SCROLLING_MS = 20_000
MAX_SCROLLS = 50
"""As many as a step may make; its time ends them before."""

MAX_WAIT_MS = 3_600_000
SETTLE_MS = 1_000
"""What an animation is given: the steps after it wait for their own targets."""

ALL_TEXT = 50
"""Characters that Maestro erases when no number is given: in practice all."""

FOCUSED: Step = {"focused": True}
_DIRECTIONS = {each: each for each in ("UP", "DOWN", "LEFT", "RIGHT")}
_SWIPE_PERCENT = {"LEFT": 80, "RIGHT": 80, "DOWN": 70, "UP": 40}
"""How far Maestro swipes, in percent of the screen."""

_MIDDLE = (40, 60)
"""Where a swipe of ours runs, in percent across its direction; a swipe further out is another one."""

_PERCENTS = re.compile(r"\s*(\d{1,3})%\s*,\s*(\d{1,3})%\s*")


@dataclass(slots=True)
class Command:
    """One command as it stands in a flow, and what is known around it."""

    scope: Scope
    variables: Variables
    selectors: Selectors
    fields: Fields
    app_id: str | None

    @property
    def lookup_ms(self) -> int:
        """How long the command looks for its node."""
        return OPTIONAL_LOOKUP_MS if self.fields.truth("optional") else LOOKUP_MS

    def text(self, field: str, *, required: bool = False) -> str | None:
        """A text with its variables as references."""
        text = self.fields.text(field, required=required)
        return None if text is None else self.variables.text(self.scope, self.fields.at(field), text)

    def app(self) -> str | None:
        """The app that is meant: the command's, else the flow's."""
        if "appId" in self.fields:
            return self.text("appId")
        if self.app_id is None:
            self.fields.missing("appId")
        return self.app_id

    def not_supported(self, field: str, message: str, hint: str) -> list[Step]:
        """Refuses a field of the command."""
        self.fields.refuse(field, ImportCode.NOT_SUPPORTED, message, hint)
        return []

    def differs(self, field: str, message: str, hint: str = "") -> None:
        """Notes that a field does something close."""
        self.scope.normalised(self.fields.at(field), ImportCode.DIFFERS, message, hint)


@dataclass(frozen=True, slots=True)
class CommandType:
    """A command: its fields, the one that a bare value means, one as it should be, and what makes steps of it."""

    example: str
    make: Callable[[Command], list[Step]]
    fields: tuple[str, ...] = field(default=())
    short: str = ""


def _settling(command: Command) -> None:
    for each in ("waitToSettleTimeoutMs", "waitUntilVisible"):
        if each in command.fields:
            message = f"{name(each)} needs nothing: every step looks afresh and waits for its node"
            command.scope.normalised(command.fields.at(each), ImportCode.NOT_NEEDED, message)


def _tap(command: Command) -> list[Step]:
    return _taps(command, command.fields.whole("repeat", low=1, high=MAX_TIMES, unit="taps"))


def _double_tap(command: Command) -> list[Step]:
    return _taps(command, 2)


def _taps(command: Command, times: int | None) -> list[Step]:
    selector = command.selectors.target(command.fields)
    _settling(command)
    redo = command.fields.truth("retryTapIfNoChange") or None
    if redo:
        message = "`retryTapIfNoChange` becomes `redo`: tapped once more at most, and only when the screen is unchanged"
        hint = "Without `after` that is when nobody knows whether the tap arrived. Add `after` with what must be seen."
        command.differs("retryTapIfNoChange", message, hint)
    delay = command.fields.whole("delay", low=0, high=10_000, unit="ms")
    if selector is None:
        return []
    interval = None if delay == DEFAULT_INTERVAL_MS or times in (None, 1) else delay
    pauses = ((times or 1) - 1) * (interval or 0)
    return [
        without_gaps(
            action="CLICK",
            selector=selector,
            times=None if times == 1 else times,
            intervalMs=interval,
            timeoutMs=min(command.lookup_ms + pauses, MAX_TIMEOUT_MS),
            redo=redo,
        )
    ]


def _long_press(command: Command) -> list[Step]:
    selector = command.selectors.target(command.fields)
    _settling(command)
    return [] if selector is None else [_step("LONG_CLICK", selector=selector, timeoutMs=command.lookup_ms)]


def _input_text(command: Command) -> list[Step]:
    text = command.text("text", required=True)
    return [] if text is None else [_step("INPUT", selector=dict(FOCUSED), value=text, clear=False)]


def _erase_text(command: Command) -> list[Step]:
    characters = command.fields.whole("charactersToErase", low=1, high=1_000, unit="characters")
    if characters is None or characters >= ALL_TEXT:
        command.differs("charactersToErase", "`eraseText` empties the focused field, whatever its length")
        return [_step("INPUT", selector=dict(FOCUSED), value="")]
    return [_step("REPEAT", maxIterations=characters, steps=[_step("KEY", key="DELETE")])]


def _paste_text(command: Command) -> list[Step]:
    if not command.variables.copied:
        message = "`pasteText` has nothing to paste: no `copyTextFrom` stands before it"
        hint = "Copy a text first, or write `inputText`."
        command.scope.refused(command.fields.place, ImportCode.NOT_SUPPORTED, message, hint)
        return []
    return [_step("INPUT", selector=dict(FOCUSED), value=f"${{outputs.{COPIED}}}", clear=False)]


def _copy_text(command: Command) -> list[Step]:
    selector = command.selectors.target(command.fields)
    command.variables.copied = True
    if selector is None:
        return []
    return [_step("EXTRACT_TEXT", selector=selector, outputField=COPIED, timeoutMs=command.lookup_ms)]


def _assert_visible(command: Command) -> list[Step]:
    return _assert(command, command.selectors.visible(command.fields.place, _selector_part(command), exact=False))


def _assert_not_visible(command: Command) -> list[Step]:
    return _assert(command, command.selectors.gone(command.fields.place, _selector_part(command)))


def _selector_part(command: Command) -> Json:
    return {each: command.fields.raw(each) for each in SELECTOR if each in command.fields}


def _assert(command: Command, condition: Step | None) -> list[Step]:
    return [] if condition is None else [_step("ASSERT", condition=condition, timeoutMs=command.lookup_ms)]


def _extended_wait(command: Command) -> list[Step]:
    fields = command.fields
    timeout = fields.whole("timeout", low=0, high=MAX_WAIT_MS, unit="ms")
    wanted = [each for each in ("visible", "notVisible") if each in fields]
    if not wanted:
        fields.missing("visible", "notVisible")
        return []
    made = [
        command.selectors.visible(fields.at(each), fields.raw(each), exact=False)
        if each == "visible"
        else command.selectors.gone(fields.at(each), fields.raw(each))
        for each in wanted
    ]
    conditions: list[Json] = [each for each in made if each is not None]
    if len(conditions) < len(made):
        return []
    return waits({"all": conditions} if len(conditions) > 1 else made[0] or {}, timeout or command.lookup_ms)


def waits(condition: Step, timeout_ms: int) -> list[Step]:
    """Steps that wait so long for a condition and fail without it, each within the longest time of a step."""
    rounds, rest = divmod(max(timeout_ms, MIN_TIMEOUT_MS) - 1, MAX_TIMEOUT_MS)
    last = _step("WAIT", condition=condition, timeoutMs=max(rest + 1, MIN_TIMEOUT_MS))
    if not rounds:
        return [last]
    inner = _step("WAIT", condition=condition, timeoutMs=MAX_TIMEOUT_MS, optional=True)
    return [_step("REPEAT", maxIterations=rounds, until=condition, steps=[inner]), last]


def _animation(command: Command) -> list[Step]:
    timeout = command.fields.whole("timeout", low=0, high=MAX_WAIT_MS, unit="ms")
    wait = SETTLE_MS if timeout is None else min(timeout, SETTLE_MS)
    command.differs("timeout", f"an animation is not watched; {wait} ms are waited", "Or WAIT for what comes after it.")
    return [_step("DELAY", minMs=wait)]


def _back(_command: Command) -> list[Step]:
    return [_step("BACK")]


def _press_key(command: Command) -> list[Step]:
    key = command.fields.text("key", required=True)
    step = key_step(key or "")
    if key is not None and step is None:
        message = f"no action of protocol v1 presses the key {shown(key)}"
        command.fields.refuse("key", ImportCode.UNKNOWN_KEY, message, meant(key, KEY_NAMES))
    return [dict(step)] if step else []


def _hide_keyboard(command: Command) -> list[Step]:
    message = "`hideKeyboard` needs no step: the keyboard is hidden when it covers the node of a later step"
    command.scope.normalised(command.fields.place, ImportCode.NOT_NEEDED, message)
    return []


def _scroll(_command: Command) -> list[Step]:
    return [_step("SCROLL", direction="DOWN", maxScrolls=1)]


def _scroll_until(command: Command) -> list[Step]:
    fields = command.fields
    direction = fields.word("direction", _DIRECTIONS)
    timeout = fields.whole("timeout", low=0, high=MAX_WAIT_MS, unit="ms") or SCROLLING_MS
    if timeout > MAX_TIMEOUT_MS:
        command.differs("timeout", f"{timeout} ms become {MAX_TIMEOUT_MS} ms, the longest time that a step may take")
    for each in ("speed", "visibilityPercentage", "centerElement"):
        if each in fields:
            command.differs(each, f"{name(each)} has no counterpart: scrolling ends when any part of the node is seen")
    if "element" not in fields:
        fields.missing("element")
        return []
    until = command.selectors.nested(fields.at("element"), fields.raw("element"), exact=False)
    if until is None:
        return []
    command.selectors.compared_text |= "text" in until or "textMatches" in until
    limit = max(MIN_TIMEOUT_MS, min(timeout, MAX_TIMEOUT_MS))
    return [_step("SCROLL", direction=direction or "DOWN", until=until, maxScrolls=MAX_SCROLLS, timeoutMs=limit)]


def _swipe(command: Command) -> list[Step]:
    fields = command.fields
    duration = fields.whole("duration", low=50, high=10_000, unit="ms")
    line = _line(command) if "start" in fields or "end" in fields else None
    if line is None and ("start" in fields or "end" in fields):
        return []
    direction, percent = line or (fields.word("direction", _DIRECTIONS, required=True), None)
    if direction is None:
        return []
    moved = without_gaps(direction=direction, durationMs=duration, timeoutMs=time_for(duration))
    if "from" not in fields:
        return [_step("SWIPE", distancePercent=percent or _SWIPE_PERCENT[direction], **moved)]
    area = command.selectors.nested(fields.at("from"), fields.raw("from"), exact=False)
    message = "a swipe from a node stays within it here; Maestro's goes on to the edge of the screen"
    command.differs("from", message, "Name a larger node if the swipe must be longer.")
    return [] if area is None else [_step("SWIPE", selector=area, **moved)]


def _line(command: Command) -> tuple[str, int] | None:
    """Direction and length in percent of a swipe from point to point, if it is one that SWIPE can do."""
    fields = command.fields
    ends = [_PERCENTS.fullmatch(fields.text(each, required=True) or "") for each in ("start", "end")]
    if ends[0] is None or ends[1] is None:
        command.not_supported("start", "`start` and `end` are not in whole percent of the screen", 'Write `"90%,50%"`.')
        return None
    (x1, y1), (x2, y2) = ([int(each) for each in end.groups()] for end in ends if end)
    across, along = ((y1, y2), x2 - x1) if abs(x2 - x1) > abs(y2 - y1) else ((x1, x2), y2 - y1)
    straight = across[0] == across[1] and _MIDDLE[0] <= across[0] <= _MIDDLE[1]
    if not straight or not 10 <= abs(along) <= 90:
        message = "this swipe is not straight through the middle of the screen, and SWIPE is"
        hint = "Use `direction`, or `from` with a node over which the finger moves."
        command.not_supported("start", message, hint)
        return None
    command.differs("start", f"the swipe is {abs(along)} % long and runs through the middle of the screen")
    words = ("RIGHT", "LEFT") if abs(x2 - x1) > abs(y2 - y1) else ("DOWN", "UP")
    return words[0] if along > 0 else words[1], abs(along)


def _launch(command: Command) -> list[Step]:
    fields = command.fields
    package = command.app()
    stop = fields.truth("stopApp")
    refused = [
        command.not_supported(each, f"{name(each)}: {why}", "Take it out, and prepare the phone before the run.")
        for each, why in _LAUNCH_REFUSED.items()
        if each in fields and fields.raw(each) != "false"
    ]
    if package is None or refused:
        return []
    return [without_gaps(action="OPEN", packageName=package, stopFirst=None if stop is False else True)]


_LAUNCH_REFUSED = {
    "clearState": "nothing in protocol v1 deletes an app's data",
    "clearKeychain": "Android has no keychain",
    "permissions": "nothing in protocol v1 grants permissions",
    "arguments": "nothing in protocol v1 starts an app with arguments",
}


def _stop(command: Command) -> list[Step]:
    package = command.app()
    return [] if package is None else [_step("STOP_APP", packageName=package)]


def _screenshot(command: Command) -> list[Step]:
    path = command.fields.text("path", required=True)
    if path is not None and "${" in path:
        return command.not_supported("path", "the name of a picture cannot hold a variable", "Write a name.")
    return [] if path is None else [_step("SCREENSHOT", name=path)]


def _step(action: str, **fields: Json) -> Step:
    return {"action": action, **fields}


_TAP = ("retryTapIfNoChange", "waitToSettleTimeoutMs", "waitUntilVisible")
_APP = ("appId",)

COMMANDS: Mapping[str, CommandType] = {
    "tapOn": CommandType("`tapOn: Buy`", _tap, (*SELECTOR, *_TAP, "repeat", "delay"), "text"),
    "doubleTapOn": CommandType("`doubleTapOn: Photo`", _double_tap, (*SELECTOR, *_TAP, "delay"), "text"),
    "longPressOn": CommandType("`longPressOn: Photo`", _long_press, (*SELECTOR, *_TAP), "text"),
    "inputText": CommandType("`inputText: green tea`", _input_text, ("text",), "text"),
    "eraseText": CommandType("`eraseText`", _erase_text, ("charactersToErase",), "charactersToErase"),
    "copyTextFrom": CommandType("`copyTextFrom: {id: total}`", _copy_text, SELECTOR, "text"),
    "pasteText": CommandType("`pasteText`", _paste_text),
    "assertVisible": CommandType("`assertVisible: Sent`", _assert_visible, SELECTOR, "text"),
    "assertNotVisible": CommandType("`assertNotVisible: Error`", _assert_not_visible, SELECTOR, "text"),
    "extendedWaitUntil": CommandType(
        "`extendedWaitUntil: {visible: Sent, timeout: 10000}`", _extended_wait, ("visible", "notVisible", "timeout")
    ),
    "waitForAnimationToEnd": CommandType("`waitForAnimationToEnd`", _animation, ("timeout",)),
    "back": CommandType("`back`", _back),
    "pressKey": CommandType("`pressKey: Enter`", _press_key, ("key",), "key"),
    "hideKeyboard": CommandType("`hideKeyboard`", _hide_keyboard),
    "scroll": CommandType("`scroll`", _scroll),
    "scrollUntilVisible": CommandType(
        "`scrollUntilVisible: {element: Green tea, direction: DOWN}`",
        _scroll_until,
        ("element", "direction", "timeout", "speed", "visibilityPercentage", "centerElement"),
    ),
    "swipe": CommandType("`swipe: {direction: LEFT}`", _swipe, ("direction", "start", "end", "from", "duration")),
    "launchApp": CommandType("`launchApp: com.example.shop`", _launch, (*_APP, "stopApp", *_LAUNCH_REFUSED), "appId"),
    "stopApp": CommandType("`stopApp: com.example.shop`", _stop, _APP, "appId"),
    "killApp": CommandType("`killApp: com.example.shop`", _stop, _APP, "appId"),
    "takeScreenshot": CommandType("`takeScreenshot: cart`", _screenshot, ("path",), "path"),
}
"""By name, as documented."""

_JAVASCRIPT = "it runs JavaScript, which no task does"
_MODEL = "it asks a language model at run time"
_PHONE = "nothing in protocol v1 changes this setting of a phone"
_RANDOM = "protocol v1 makes no random texts; declare an input and give its value at the run"

NOT_SUPPORTED: Mapping[str, str] = {
    "openLink": "nothing in protocol v1 opens links; open the app and go where the link leads",
    "clearState": "nothing in protocol v1 deletes an app's data; prepare the phone before the run",
    "clearKeychain": "Android has no keychain",
    "runScript": _JAVASCRIPT,
    "evalScript": _JAVASCRIPT,
    "assertTrue": f"{_JAVASCRIPT}; assert what is seen with `assertVisible`",
    "assertWithAI": _MODEL,
    "assertNoDefectsWithAI": _MODEL,
    "extractTextWithAI": f"{_MODEL}; name the node and use `copyTextFrom`",
    "assertScreenshot": "protocol v1 compares no screenshots; assert what is seen with `assertVisible`",
    "retry": "it repeats what may have had an effect already; repeat the run instead",
    "inputRandomEmail": _RANDOM,
    "inputRandomNumber": _RANDOM,
    "inputRandomPersonName": _RANDOM,
    "inputRandomText": _RANDOM,
    "setClipboard": "protocol v1 sets no clipboard; write the text with `inputText`",
    "addMedia": "nothing in protocol v1 puts files on a phone; prepare it before the run",
    "setAirplaneMode": _PHONE,
    "toggleAirplaneMode": _PHONE,
    "setLocation": _PHONE,
    "setOrientation": _PHONE,
    "setPermissions": _PHONE,
    "travel": _PHONE,
    "startRecording": "protocol v1 records no video; use `takeScreenshot`",
    "stopRecording": "protocol v1 records no video; use `takeScreenshot`",
}
"""Commands that Maestro has and protocol v1 does not, and why."""
