"""The steps of the task that the planner writes. What a step is named by comes from the lines that it saw. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from droidfleet_designer.practice import finding
from droidfleet_designer.practice.reading import Line, Shown, Word, same, texts_in
from droidfleet_designer.practice.said import said
from droidfleet_designer.practice.times import MAX_TIMES
from droidfleet_designer.practice.wishes import Again, Check, Clause, LongPress, Name, Search, Type, Wish
from droidfleet_shared.protocol.text import normalise

Step = dict[str, JsonValue]

OPTIONAL_MS = 2_000
"""For what may or may not come up: every run waits so long for it."""

LATE_MS = 30_000
"""For what a person says is waited for: the most that a step may wait."""

MAX_SCROLLS = 50
"""As many as a step may: a list may be longer on the next phone."""

PAUSE_MS = (2_000, 5_000)
"""Between rounds where nothing was said: about as fast as a person."""

TAPS_MS = 400
"""Between the taps of one CLICK: ten of them are done within its `timeoutMs`."""

MAX_CLICKS = 10
"""Of one CLICK."""

MAX_LABEL = 200
"""Characters."""

ROOM_MS = 600_000
"""For the rest of a task that repeats something for a while."""

_PACKAGE = re.compile(r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)+")
_RELATIONS = ("within", "leftOf", "rightOf", "above", "below")
_NOT_IN_A_NAME = re.compile(r"\W+", re.ASCII)


class Steps:
    """The task as it grows. Steps that lead to a wish are ``pend``-ing until it is done, and dropped if it is not.
    ``scrolled``: the planner had to scroll to it, so the task will."""

    def __init__(self, language: str) -> None:
        self.done: list[Step] = []
        self.clauses: list[str] = []
        self.inputs: dict[str, JsonValue] = {}
        self.duration_ms: int | None = None
        self.scrolled = False
        self._pending: list[Step] = []
        self._outputs: list[str] = []
        self._rest: tuple[int, Again] | None = None
        self._language = language
        self._count = 0

    def pend(self, verb: str, step: Step, label: str) -> None:
        """A step that leads to the present wish."""
        self._pending.append(self._named(verb, step, label))

    def close(self, line: Line) -> None:
        """What closes something in the way, if it is there."""
        step: Step = {"action": "CLICK", "selector": line.selector, "optional": True, "timeoutMs": OPTIONAL_MS}
        self.pend("close", step, said("CLOSE_LABEL", self._language))

    def extraction(self, selector: Mapping[str, JsonValue], name: Name) -> Step:
        """Reads a text into an output of its own name."""
        bare = _NOT_IN_A_NAME.sub("_", name.others[0] if name.others else name.text).strip("_").lower()
        wanted = bare if bare and bare[0].isalpha() else "value"
        taken = self._outputs.count(wanted)
        self._outputs.append(wanted)
        return {
            "action": "EXTRACT_TEXT",
            "selector": dict(selector),
            "outputField": f"{wanted}_{taken + 1}" if taken else wanted,
        }

    def commit(self, verb: str, step: Step, clause: Clause) -> bool:
        """The wish is done by this step. True: it is repeated in the task."""
        before, again = len(self.done), clause.again
        label = clause.said or said("OPEN_LABEL", self._language)
        if self.scrolled and (selector := _named_in(step)) is not None:
            self.pend("scroll", scrolling(selector), said("SCROLL_LABEL", self._language, what=_first_text(selector)))
        self.done += self._pending
        self._pending, self.scrolled = [], False
        if again is not None and again.chance is not None:
            step |= {"probability": again.chance, "optional": True, "timeoutMs": OPTIONAL_MS}
        if again is not None and again.rest and self._rest is None:
            self._rest = (len(self.done), again)
        named = self._named(verb, step, label)
        repeated = again is not None and not again.rest and (again.times or again.milliseconds)
        if again is not None and repeated:
            named = self._repeated([named], again)
        self.done.append(named)
        self.clauses += [label] * (len(self.done) - before)
        return bool(repeated)

    def drop_pending(self) -> None:
        """Forgets what led to a wish that could not be done."""
        self._pending, self.scrolled = [], False

    def cut(self, place: int) -> list[str]:
        """Takes out the step at this place of the task and all after it; what the person said of them."""
        gone = self.clauses[place:]
        del self.done[place:], self.clauses[place:]
        return list(dict.fromkeys(gone))

    @property
    def task(self) -> list[Step]:
        """All of them."""
        if self._rest is None or self._rest[0] >= len(self.done):
            return list(self.done)
        place, again = self._rest
        return [*self.done[:place], self._repeated(self.done[place:], again)]

    def _repeated(self, inner: Sequence[Step], again: Again) -> Step:
        taps = len(inner) == 1 and inner[0]["action"] == "CLICK" and "unlessVisible" not in inner[0]
        if taps and again.times is not None and again.times <= MAX_CLICKS and again.pause is None:
            return {**inner[0], "times": again.times, "intervalMs": TAPS_MS}
        least, most = again.pause or PAUSE_MS
        pause = self._named(
            "pause", {"action": "DELAY", "minMs": least, "maxMs": most}, said("PAUSE_LABEL", self._language)
        )
        bound: Step = {"maxIterations": again.times or MAX_TIMES}
        if again.milliseconds is not None:
            bound["maxDurationMs"] = again.milliseconds
            self.duration_ms = again.milliseconds + ROOM_MS
        return self._named("repeat", {"action": "REPEAT", **bound, "steps": [*inner, pause]}, str(inner[0]["label"]))

    def _named(self, verb: str, step: Step, label: str) -> Step:
        self._count += 1
        return {"id": f"{verb}-{self._count}", "label": literal(label[:MAX_LABEL]), **step}


def selector_of(line: Line, name: Name | None, screen: Shown) -> Step:
    """By what a step names a line: with the words that the person called it by, so that it is nothing else next time.

    The line's own selector may do without them where they stand twice, or may change: it says what is below a field,
    say, whatever that is.
    """
    own = dict(line.selector or {})
    word = next((each for each in line.words if name is not None and finding.is_called(each, name)), None)
    if word is None or line.kind == "field" or ("resourceId" in own and not line.noted):
        return own
    kind, whole = "description" if word.described else "text", literal(normalise(word.text))
    if whole in texts_in(own):
        return own
    said = sum(same(text.text, word.text) for other in screen.lines for text in other.words)
    typed = [other for other in screen.lines if same(other.holds, word.text)]
    if said == 1 and not typed:
        return {kind: whole}
    if said == 1 and len(typed) == 1 and typed[0].selector is not None:
        # It was searched for, and the field says it, too.
        return {kind: whole, "below" if typed[0].number < line.number else "above": typed[0].selector}
    if word.id:
        return {kind: whole, "resourceId": word.id}
    placed = {relation: own[relation] for relation in _RELATIONS if relation in own}
    return {kind: whole, **placed} if placed else own


def may_change(line: Line, selector: Step) -> bool:
    """Whether a selector for a line may name something else next time: it counts, or is about what stands beside it."""
    own = {literal(normalise(word.text)) for word in line.words}
    said_beside = texts_in(selector)
    return "index" in selector or (bool(said_beside) and not own & said_beside)


def acting(wish: Wish, line: Line | None, selector: Step) -> tuple[str, Step]:
    """The verb and the step of a wish that acts on a line by this selector; None: on none."""
    match wish:
        case LongPress():
            return "press", {"action": "LONG_CLICK", "selector": selector}
        case Type(text=text):
            return "type", {"action": "INPUT", "selector": selector, "value": literal(text)}
        case Search(text=text):
            return "search", {"action": "INPUT", "selector": selector, "value": literal(text), "submit": True}
        case _ if line is None:
            return "back", {"action": "BACK"}
        case _:
            return "tap", {"action": "CLICK", "selector": selector}


def turning(line: Line, *, on: bool) -> Step:
    """Taps a switch unless it is as wished."""
    selector = dict(line.selector or {})
    return {"action": "CLICK", "selector": selector, "unlessVisible": {**selector, "checked": on}}


def secret(line: Line, declared: Mapping[str, JsonValue]) -> tuple[Step, str]:
    """Types an input that nobody reads, and the input's name."""
    name = f"secret{len(declared) + 1}" if declared else "password"
    return {"action": "INPUT", "selector": dict(line.selector or {}), "value": f"${{inputs.{name}}}"}, name


def scrolling(selector: Mapping[str, JsonValue]) -> Step:
    """Scrolls until something is seen."""
    return {"action": "SCROLL", "until": dict(selector), "maxScrolls": MAX_SCROLLS}


def seeing(wish: Check, selector: Mapping[str, JsonValue]) -> tuple[str, Step]:
    """The verb and the step that sees that something is shown."""
    condition: Step = {"visible": dict(selector)}
    if wish.waiting:
        return "wait", {"action": "WAIT", "condition": condition, "timeoutMs": LATE_MS}
    return "check", {"action": "ASSERT", "condition": condition}


def saying(word: Word, name: Name) -> Step:
    """The selector of what says this, whole or as a part, as the screen writes it."""
    kind = "description" if word.described else "text"
    whole = normalise(word.text)
    if not word.cut and any(same(whole, each) for each in name.spellings):
        return {kind: literal(whole)}
    spelt = next(each for each in map(normalise, name.spellings) if each.casefold() in whole.casefold())
    begin = whole.casefold().index(spelt.casefold())
    return {f"{kind}Contains": literal(whole[begin : begin + len(spelt)])}


def reading(line: Line, name: Name) -> Step | None:
    """The selector of what is to be read: by its maker's name for it, or by how it begins. None: it has neither."""
    identity = finding.id_of(line, name)
    if identity:
        return {"resourceId": identity}
    for word in line.words:
        for spelt in map(normalise, name.spellings):
            if normalise(word.text).casefold().startswith(spelt.casefold()):
                kind = "descriptionStartsWith" if word.described else "textStartsWith"
                return {kind: literal(normalise(word.text)[: len(spelt)])}
    return None


def is_package(text: str) -> bool:
    """Whether a name is that of an Android package."""
    return _PACKAGE.fullmatch(text) is not None


def literal(text: str) -> str:
    """The text so that the protocol takes none of it for a reference."""
    return text.replace("${", "$${")


def _named_in(step: Mapping[str, JsonValue]) -> Mapping[str, JsonValue] | None:
    """What must be in sight for a step."""
    condition = step.get("condition")
    found = condition.get("visible") if isinstance(condition, dict) else step.get("selector")
    return found if isinstance(found, dict) else None


def _first_text(selector: Mapping[str, JsonValue]) -> str:
    return next((each for each in selector.values() if isinstance(each, str)), "")
