"""What the author probably meant: misspelt and foreign names of fields, actions and words.

Names only; whether something is an error was decided before. Every hint is a sentence that can stand alone.
"""

from __future__ import annotations

import difflib
import heapq
import itertools
from collections.abc import Collection, Iterable

from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS
from droidfleet_shared.protocol.wording import listed, name

_ACTION_SYNONYMS = {
    "CLICK": ("tap", "press", "touch", "single_click", "click_element", "click_on"),
    "INPUT": ("type", "set_text", "enter_text", "input_text", "type_text", "send_keys", "fill", "write", "enter"),
    "BACK": ("go_back", "press_back", "navigate_back"),
    "WAIT": ("wait_for", "wait_until", "wait_for_element", "wait_visible", "expect", "see"),
    "EXTRACT_TEXT": ("get_text", "read_text", "read", "get", "extract_value", "scrape"),
    "LONG_CLICK": ("long_press", "long_tap", "press_and_hold", "hold"),
    "KEY": ("press_key", "keyevent", "key_event", "home", "recents", "menu"),
    "DELAY": ("sleep", "pause"),
    "OPEN": ("launch", "launch_app", "start", "start_app", "open_app", "start_activity"),
    "STOP_APP": ("stop", "close", "close_app", "kill", "kill_app", "force_stop"),
    "SCROLL": ("scroll_to", "scroll_down", "scroll_up", "scroll_until", "fling"),
    "SWIPE": ("swipe_up", "swipe_down", "swipe_left", "swipe_right"),
    "DRAG": ("drag_and_drop", "drag_to"),
    "SELECT_OPTION": ("select", "choose", "pick", "select_from_list"),
    "SCREENSHOT": ("take_screenshot", "capture"),
    "WAKE": ("wake_up", "unlock", "screen_on"),
    "ASSERT": ("check", "verify", "assert_visible"),
    "REPEAT": ("loop", "while", "for", "for_each"),
    "IF": ("when", "conditional", "if_else"),
    "GROUP": ("block", "sequence", "steps"),
    "BRANCH": ("goto", "go_to", "jump", "jump_if"),
}

_FIELD_SYNONYMS: dict[str, dict[str, tuple[str, ...]]] = {
    "task": {
        "schemaVersion": ("version", "protocolVersion", "v"),
        "taskId": ("id", "name", "taskName", "title"),
        "assignedAgentName": ("agent", "agentName", "device", "deviceName", "assignedAgent", "assignee", "phone"),
        "steps": ("actions", "tasks", "commands", "script"),
        "maxDurationMs": ("timeout", "timeoutMs", "duration", "maxDuration"),
        "inputs": ("parameters", "params", "variables", "args", "arguments"),
        "inputValues": ("values", "parameterValues", "variableValues"),
        "randomSeed": ("seed", "random"),
        "artifacts": ("pictures", "images", "attachments"),
    },
    "step": {
        "id": ("stepId", "name", "key"),
        "action": ("type", "command", "kind", "operation", "do"),
        "selector": ("target", "element", "locator", "find", "on", "node"),
        "label": ("title", "comment", "note", "summary"),
        "packageName": ("package", "pkg", "app", "appPackage", "appId"),
        "activityName": ("activity", "appActivity"),
        "timeoutMs": ("timeout", "wait", "waitMs", "maxWait", "timeoutSeconds"),
        "optional": ("ignoreFailure", "skippable", "allowFailure"),
        "value": ("text", "input", "content", "inputText", "keys"),
        "clear": ("clearFirst", "replace"),
        "submit": ("enter", "pressEnter", "send"),
        "times": ("count", "clicks", "taps", "repeat"),
        "intervalMs": ("delay", "delayMs", "interval", "pauseMs"),
        "unlessVisible": ("unless", "skipIfVisible", "skipIf"),
        "outputField": ("output", "saveAs", "variable", "storeAs", "outputName", "field", "as", "into"),
        "append": ("asList", "collect"),
        "when": ("if", "onlyIf", "runIf"),
        "after": ("then", "verify", "expect", "postcondition", "waitAfter"),
        "redo": ("retry", "retries", "repeatable", "idempotent"),
        "onFailure": ("onError", "onFail", "ifFails"),
        "probability": ("chance", "likelihood", "percent"),
        "condition": ("if", "until", "expression", "when"),
        "then": ("steps", "do", "children"),
        "else": ("otherwise", "elseSteps"),
        "steps": ("children", "do", "body", "actions"),
        "maxIterations": ("iterations", "rounds", "times", "count", "maxRounds"),
        "until": ("while", "stopWhen", "stopIf", "condition"),
        "goto": ("target", "to", "next", "step"),
        "direction": ("dir", "towards"),
        "maxScrolls": ("maxSwipes", "scrolls", "limit"),
        "durationMs": ("duration", "holdMs", "hold"),
        "key": ("keyCode", "keycode", "keyName"),
        "minMs": ("min", "from", "delayMs", "milliseconds", "ms"),
        "maxMs": ("max",),
        "fields": ("columns", "outputs", "values"),
        "option": ("choice", "value", "item"),
        "to": ("target", "destination", "dropOn"),
        "byPercent": ("by", "offset", "distance"),
    },
    "selector": {
        "text": ("label", "name", "title", "caption", "textEquals", "exactText"),
        "textContains": ("partialText", "textContain", "contains", "containsText"),
        "textStartsWith": ("startsWith", "textPrefix", "prefix"),
        "textMatches": ("regex", "textRegex", "pattern", "matches"),
        "description": (
            "contentDescription",
            "contentDesc",
            "desc",
            "accessibilityId",
            "accessibilityLabel",
            "ariaLabel",
        ),
        "descriptionContains": ("contentDescriptionContains", "descContains", "contentDescContains"),
        "descriptionStartsWith": ("descStartsWith", "contentDescStartsWith"),
        "descriptionMatches": ("descMatches", "descriptionRegex", "contentDescMatches"),
        "resourceId": ("id", "resourceName", "viewId", "rid", "elementId"),
        "className": ("class", "type", "widget", "tag", "role"),
        "hint": ("placeholder", "hintText"),
        "packageName": ("package", "pkg"),
        "index": ("instance", "nth", "position", "idx", "number"),
        "within": ("parent", "ancestor", "inside", "container", "in", "childOf"),
        "has": ("child", "descendant", "hasChild", "hasDescendant", "containing"),
        "leftOf": ("left", "toLeftOf"),
        "rightOf": ("right", "toRightOf"),
        "above": ("top", "over"),
        "below": ("under", "beneath", "bottom"),
        "xpath": ("xPath", "path"),
        "password": ("isPassword",),
        "enabled": ("isEnabled",),
        "checked": ("isChecked",),
        "clickable": ("isClickable",),
    },
}

_LONGEST_NAME = 64
"""Longer words are no misspelling of ours, and comparing them takes time."""

_MAX_COMPARED = 200
"""Words compared with one: as many as a task has steps. A document that is refused may have thousands."""

_FINALISTS = 5
"""Words compared in full: those that share the most letters. It takes time that grows with the square of the length."""


def folded(word: str) -> str:
    """The word without what spellings differ in: case, underscores, dashes and spaces."""
    return "".join(char for char in word[:_LONGEST_NAME].lower() if char.isalnum())


def meant_action(found: str) -> str | None:
    """The action that was probably meant."""
    return _closest(found, {each: _ACTION_SYNONYMS.get(each, ()) for each in IMPLEMENTED_ACTIONS})


def closest(found: str, words: Iterable[str]) -> str | None:
    """The one of some words of ours that was probably meant; their spelling counts loosely."""
    return _closest(found, dict.fromkeys(words, ()))


def nearest(found: str, words: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The word that is most like ``found``, of any origin; None when none is at least ``cutoff`` like it."""
    if len(found) > _LONGEST_NAME:
        return None
    matcher = difflib.SequenceMatcher(b=found, autojunk=False)
    likely: list[tuple[float, str]] = []
    for word in itertools.islice(words, _MAX_COMPARED):
        if len(word) <= _LONGEST_NAME:
            matcher.set_seq1(word)
            if matcher.real_quick_ratio() >= cutoff and (bound := matcher.quick_ratio()) >= cutoff:
                likely.append((bound, word))
    best: tuple[float, str] = (cutoff, "")
    for bound, word in heapq.nlargest(_FINALISTS, likely):
        if bound > best[0] or not best[1]:
            matcher.set_seq1(word)
            best = max(best, (matcher.ratio(), word))
    return best[1] or None


def action_hint(found: str | None) -> str:
    """What to write as an action instead of ``found`` (None: nothing was written)."""
    everything = f"The actions are {listed([name(each) for each in IMPLEMENTED_ACTIONS])}."
    meant = meant_action(found) if found is not None else None
    if meant is None:
        return everything
    return f"Did you mean {name(meant)}? {everything}"


def field_hint(
    found: str, *, where: str, fields: Iterable[str], given: Collection[str], elsewhere: dict[str, str]
) -> str:
    """The hint for an unknown field of a ``task``, ``step`` or ``selector`` that may have ``fields``.

    ``given`` are the fields that the object has already: they are not what was meant.
    ``elsewhere`` says of fields that stand in other places where that is, as a clause (`in the selector`).
    """
    allowed = list(fields)
    synonyms = _FIELD_SYNONYMS.get(where, {})
    missing = [each for each in allowed if each not in given]
    if meant := _closest(found, {each: synonyms.get(each, ()) for each in missing}, cutoff=0.84):
        return f"Did you mean {name(meant)}?"
    if clause := elsewhere.get(folded(found)):
        return clause
    if meant := _closest(found, dict.fromkeys(missing, ())):
        return f"Did you mean {name(meant)}?"
    return f"The fields here are {listed([name(each) for each in allowed])}."


def _closest(found: str, known: dict[str, tuple[str, ...]], *, cutoff: float = 0.7) -> str | None:
    spellings = {folded(each): each for each in known}
    for each, synonyms in known.items():
        for synonym in synonyms:
            spellings.setdefault(folded(synonym), each)
    near = nearest(folded(found), spellings, cutoff=cutoff)
    return spellings[near] if near is not None else None
