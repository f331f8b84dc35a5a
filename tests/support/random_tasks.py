"""Random task documents over all of protocol v1, valid ones and broken ones, each from one number.

A number instead of a tree of hypothesis draws: two thousand runs must fit a minute. The words are few, so that
selectors meet nodes of `random_phones` often enough, and times are short, so that waits cost few looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from random import Random
from typing import Any

from hypothesis import strategies as st

from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS
from droidfleet_shared.protocol.steps.touching import KeyName
from droidfleet_shared.protocol.task import Task

Document = dict[str, Any]  # JSON
Draws = Mapping[str, Callable[[], Any]]

MOST_STEPS = 14
MOST_DEPTH = 5
MOST_ROUNDS = 3

LABELS = ("Add", "Buy", "50%", 'It\'s "ok"', "添加", "Go 😀")
IDS = ("row", "button", "field", "com.example.shop:id/list")
CLASSES = ("android.widget.TextView", "android.widget.EditText", "android.widget.Button", "ListView")
PACKAGES = ("com.example.shop", "com.example.other")
ACTIVITIES = (".MainActivity", "com.example.shop.CartActivity")
PATTERNS = ("A.*", ".*", r"\d+%", "(?i)buy|cart", "")
TEXT_OUTPUTS = ("a", "total")
LIST_OUTPUTS = ("rows", "seen")
OUTPUTS = (*TEXT_OUTPUTS, *LIST_OUTPUTS)
TIMEOUTS_MS = (100, 400, 1_000, 1_000, 3_000)
PIN = "4711-secret"

FLAGS = ("enabled", "checked", "selected", "focused", "clickable", "scrollable", "password")
RELATIONS = ("within", "has", "leftOf", "rightOf", "above", "below")
ATTRIBUTES = ("label", "text", "description", "hint", "resourceId", "className", "checked", "enabled", "bounds")
DIRECTIONS = ("UP", "DOWN", "LEFT", "RIGHT")


class RandomTasks:
    """Makes one valid document."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._left = random.randint(1, MOST_STEPS)
        self._count = 0
        self._referred: set[str] = set()

    def task(self) -> Document:
        """A valid task for `support.runs.AGENT`."""
        self._referred.clear()
        document: Document = {"schemaVersion": 1, "taskId": "t", "assignedAgentName": "phone-01"}
        steps = self._steps(1)
        for output in sorted(self._referred):  # a reference needs a step that writes the output
            selector = {"text": self._pick(LABELS), "index": 0}
            step = {"action": "EXTRACT_TEXT", "selector": selector, "outputField": output, "optional": True}
            steps.append(self._named(step | ({"append": True} if output in LIST_OUTPUTS else {})))
        document["steps"] = steps
        document["inputs"] = {
            "item": {"type": "string", "default": self._pick(LABELS)},
            "n": {"type": "integer", "default": self._random.randint(-3, 3)},
            "yes": {"type": "boolean"},
            "ratio": {"type": "number", "default": 0.5},
            "pin": {"type": "secret"},
        }
        document["inputValues"] = {"pin": PIN, "yes": self._chance(0.5)}
        if self._chance(0.2):
            document["inputValues"]["item"] = self._pick(LABELS)
        if self._chance(0.5):
            document["randomSeed"] = self._random.randint(0, 2**53 - 1)
        if self._chance(0.3):
            document["maxDurationMs"] = self._random.randint(1_000, 8_000)
        return document

    # Drawing ----------------------------------------------------------------------------------------------------

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _pick(self, among: tuple[str, ...]) -> str:
        return self._random.choice(among)

    def _text(self, plain: tuple[str, ...] = LABELS) -> str:
        """A text, sometimes with references."""
        if not self._chance(0.12):
            return self._pick(plain)
        kind = self._random.randrange(4)
        if kind == 0:
            output = self._pick(OUTPUTS)
            self._referred.add(output)
            return f"${{outputs.{output}}}"
        return ("${inputs.item}", "x ${inputs.n} $${literal} ${inputs.yes}", "${inputs.ratio}")[kind - 1]

    def _some(self, fields: Draws, share: float) -> Document:
        return {name: make() for name, make in fields.items() if self._chance(share)}

    # Selectors and conditions -----------------------------------------------------------------------------------

    def selector(self, depth: int = 1) -> Document:
        """Mostly by text; now and then by anything else."""
        kind = self._random.random()
        if kind < 0.04:
            literal = "${inputs.item}" if self._chance(0.3) else "'Add'"
            return {"xpath": f"//node[@text={literal}]"}
        made: Document = {}
        names = ("text", "text", "text", "text", "textContains", "description", "resourceId", "className")
        name = self._random.choice(names)
        if name == "resourceId":
            made[name] = self._text(IDS)
        elif name == "className":
            made[name] = self._text(CLASSES)
        else:
            made[name] = self._text()
        fields: Draws = {
            "textStartsWith": lambda: self._pick(LABELS)[:2],
            "textMatches": lambda: self._text(PATTERNS[:-1]),
            "hint": self._text,
            "packageName": lambda: self._pick(PACKAGES),
            "index": lambda: self._random.randint(0, 2),
        }
        made |= self._some(fields, 0.03)
        made |= self._some(dict.fromkeys(FLAGS, lambda: self._chance(0.8)), 0.01)
        if self._chance(0.8):
            made["index"] = 0
        if depth < 3:
            made |= self._some(dict.fromkeys(RELATIONS, lambda: self.selector(depth + 1)), 0.02)
        return made

    def condition(self, depth: int = 1) -> Document:
        """One kind, sometimes with others inside."""
        kinds = ("visible", "visible", "gone", "foreground", "activity", "output", "all", "any", "not")
        kind = self._random.choice(kinds if depth < 3 else kinds[:6])
        match kind:
            case "visible" | "gone":
                return {kind: self.selector()}
            case "foreground":
                return {kind: self._pick(PACKAGES)}
            case "activity":
                return {kind: self._pick(ACTIVITIES)}
            case "output":
                output = self._pick(OUTPUTS)
                self._referred.add(output)
                compare = self._random.choice(("equals", "contains", "matches"))
                return {kind: output, compare: self._text(PATTERNS[:-1] if compare == "matches" else LABELS)}
            case "not":
                return {kind: self.condition(depth + 1)}
            case _:
                return {kind: [self.condition(depth + 1) for _ in range(self._random.randint(1, 3))]}

    # Steps ------------------------------------------------------------------------------------------------------

    def _steps(self, depth: int) -> list[Document]:
        steps = []
        for _ in range(self._random.randint(1, 5)):
            steps.append(self._step(depth))
            if self._left <= 0:
                break
        for place, step in enumerate(steps[:-1]):
            later = self._random.choice(steps[place + 1 :])["id"]
            if step["action"] == "BRANCH":
                step["goto"] = later
            if self._chance(0.15):
                step["onFailure"] = {"goto": later}
        if steps[-1]["action"] == "BRANCH":  # nothing to jump to
            steps.append(self._named({"action": "DELAY", "minMs": 0}))
            steps[-2]["goto"] = steps[-1]["id"]
        return steps

    def _named(self, step: Document) -> Document:
        self._count += 1
        return {"id": f"s{self._count}"} | step

    def _step(self, depth: int) -> Document:
        self._left -= 1
        containers = ("GROUP", "IF", "REPEAT")
        actions = [each for each in IMPLEMENTED_ACTIONS if depth < MOST_DEPTH or each not in containers]
        action = self._random.choice(actions)
        step = self._named({"action": action} | self._common(action))
        step |= self._own(action, depth, step["timeoutMs"])
        return step

    def _common(self, action: str) -> Document:
        step: Document = {"timeoutMs": self._random.choice(TIMEOUTS_MS)}
        fields: Draws = {
            "label": self._text,
            "packageName": lambda: PACKAGES[0] if self._chance(0.9) else PACKAGES[1],
            "when": self.condition,
            "after": lambda: {"condition": self.condition()} | self._some({"timeoutMs": self._timeout}, 0.8),
            "probability": lambda: self._random.choice((0, 1, 50, 99, 100)),
            "optional": lambda: True,
            "onFailure": lambda: self._random.choice(("STOP", "CONTINUE", "CONTINUE")),
        }
        step |= self._some(fields, 0.15)
        if self._chance(0.8):
            step["onFailure"] = "CONTINUE"
        if "packageName" in step and self._chance(0.2):
            step["activityName"] = self._pick(ACTIVITIES)
        if IMPLEMENTED_ACTIONS[action].touches and self._chance(0.3):
            step |= {"redo": True} | self._some({"after": fields["after"]}, 0.5)
        return step

    def _timeout(self) -> int:
        return self._random.choice(TIMEOUTS_MS)

    def _own(self, action: str, depth: int, timeout_ms: int) -> Document:
        """The fields of one action."""
        makers: dict[str, Callable[[], Document]] = {
            "CLICK": lambda: self._click(timeout_ms),
            "LONG_CLICK": lambda: {"durationMs": 300, "timeoutMs": max(1_200, timeout_ms)} | self._touched(),
            "INPUT": self._input,
            "BACK": dict,
            "KEY": lambda: {"key": self._random.choice(list(KeyName)).value},
            "OPEN": lambda: {"packageName": self._pick(PACKAGES)} | self._some({"stopFirst": lambda: True}, 0.3),
            "STOP_APP": lambda: {"packageName": self._pick(PACKAGES)},
            "SCROLL": self._scroll,
            "SWIPE": self._swipe,
            "DRAG": lambda: self._drag(timeout_ms),
            "SELECT_OPTION": lambda: (
                {"option": self.selector(), "maxScrolls": self._random.randint(1, 3)} | self._target()
            ),
            "WAKE": dict,
            "WAIT": lambda: self._target() if self._chance(0.6) else {"condition": self.condition()},
            "DELAY": self._delay,
            "EXTRACT_TEXT": self._extract_text,
            "EXTRACT": self._extract,
            "SCREENSHOT": lambda: self._some({"name": self._text}, 0.3),
            "ASSERT": lambda: {"condition": self.condition()},
            "GROUP": lambda: {"steps": self._steps(depth + 1)},
            "IF": lambda: (
                {"condition": self.condition(), "then": self._steps(depth + 1)}
                | self._some({"else": lambda: self._steps(depth + 1)}, 0.5)
            ),
            "REPEAT": lambda: self._repeat(depth),
            "BRANCH": lambda: {"condition": self.condition(), "goto": ""},
        }
        return makers[action]()

    def _target(self) -> Document:
        return {"selector": self.selector()}

    def _touched(self) -> Document:
        if self._chance(0.05):
            x, y = self._random.randint(0, 100), self._random.randint(0, 100)
            return {"selector": {"point": {"xPercent": x, "yPercent": y}, "allowPoint": True}}
        return self._target()

    def _click(self, timeout_ms: int) -> Document:
        made = self._touched() | self._some({"unlessVisible": self.selector}, 0.1)
        if self._chance(0.2):
            made |= {"times": self._random.randint(1, 3), "intervalMs": self._random.randint(0, timeout_ms // 4)}
        return made

    def _input(self) -> Document:
        value = "${inputs.pin}" if self._chance(0.2) else self._text((*LABELS, ""))
        flags: Draws = {"clear": lambda: False, "submit": lambda: True}
        made = {"selector": {"resourceId": IDS[2], "index": 0}} if self._chance(0.6) else self._target()
        return {"value": value} | made | self._some(flags, 0.2)

    def _scroll(self) -> Document:
        fields: Draws = {
            "selector": self.selector,
            "until": self.selector,
            "direction": lambda: self._pick(DIRECTIONS),
        }
        return {"maxScrolls": self._random.randint(1, 4)} | self._some(fields, 0.4)

    def _swipe(self) -> Document:
        made: Document = {"direction": self._pick(DIRECTIONS), "durationMs": 50}
        made["distancePercent"] = self._random.randint(10, 90)
        return made | self._some({"selector": self.selector}, 0.4)

    def _drag(self, timeout_ms: int) -> Document:
        made: Document = (
            {"durationMs": 50, "timeoutMs": max(1_200, timeout_ms)}
            | self._touched()
            | self._some({"requireVisible": self.selector}, 0.1)
        )
        to = self.selector()
        if self._chance(0.5) and to != made["selector"]:
            return made | {"to": to}
        return made | {"byPercent": {"x": self._random.randint(1, 40)}}

    def _delay(self) -> Document:
        least = self._random.randint(0, 300)
        made: Document = {"minMs": least}
        return made | self._some({"maxMs": lambda: least + self._random.randint(0, 500)}, 0.5)

    def _extract_text(self) -> Document:
        if self._chance(0.3):
            return {"outputField": self._pick(LIST_OUTPUTS), "append": True} | self._target()
        return {"outputField": self._pick(TEXT_OUTPUTS)} | self._target()

    def _extract(self) -> Document:
        made = self._target() | self._some({"append": lambda: True}, 0.3)
        if self._chance(0.5):
            made |= {"all": True} | self._some({"maxItems": lambda: self._random.randint(1, 3)}, 0.5)
        outputs = LIST_OUTPUTS if "append" in made or "all" in made else TEXT_OUTPUTS
        made["fields"] = [
            {"outputField": name, "attribute": self._pick(ATTRIBUTES)} | self._some({"selector": self.selector}, 0.3)
            for name in self._random.sample(outputs, self._random.randint(1, 2))
        ]
        return made

    def _repeat(self, depth: int) -> Document:
        made: Document = {"maxIterations": self._random.randint(1, MOST_ROUNDS), "steps": self._steps(depth + 1)}
        fields: Draws = {"until": self.condition, "maxDurationMs": lambda: self._random.randint(1_000, 4_000)}
        return made | self._some(fields, 0.3)


# Broken documents -----------------------------------------------------------------------------------------------

_ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**300,
    0.5,
    "",
    " ",
    "${inputs.nobody}",
    "${outputs.nothing}",
    "${",
    "(a+)+",
    "(?:(?:(?:.*){1000}){1000}){1000}",
    "//a[",
    "\x00\ud800",
    "x" * 5_000,
    [],
    {},
    [[[[[[]]]]]],
    {"text": "Add"},
    {"visible": {"text": "Add"}},
    {"not": {"not": {"not": {"not": {"not": {"not": {"foreground": "android"}}}}}}},
    {"all": [{"visible": {"text": "Add"}}] * 30},
    {"goto": "s1"},
    {"id": "s1", "action": "BACK"},
)
_WORDS = sorted(
    {
        *(field.alias or name for model in (Task, Selector) for name, field in model.model_fields.items()),
        *(field.alias or name for step in IMPLEMENTED_ACTIONS.values() for name, field in step.model_fields.items()),
    }
)


def broken(document: Document, random: Random) -> Document:
    """The document with one to four values replaced, removed, added, or moved elsewhere; it may still be valid."""
    made: Document = deepcopy(document)
    for _ in range(random.randint(1, 4)):
        holders = _holders(made)
        holder = random.choice(holders)
        value = deepcopy(random.choice(_ODD) if random.random() < 0.6 else random.choice(holders))
        if isinstance(holder, dict):
            key = random.choice([*holder, *random.sample(_WORDS, 2)])
            if random.random() < 0.3:
                holder.pop(key, None)
            else:
                holder[key] = value
        elif holder and random.random() < 0.4:
            del holder[random.randrange(len(holder))]
        else:
            holder.insert(random.randint(0, len(holder)), value)
    return made


def _holders(value: object) -> list[Any]:
    found = [value] if isinstance(value, dict | list) else []
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found += _holders(inner)
    return found


SEEDS = st.integers(0, 2**32 - 1)
VALID_TASKS = SEEDS.map(lambda seed: RandomTasks(Random(seed)).task())
BROKEN_TASKS = SEEDS.map(lambda seed: broken(RandomTasks(Random(seed)).task(), Random(seed + 1)))
