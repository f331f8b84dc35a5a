"""Random trees of steps, run by the engine and by a slow interpreter that is plainly right.

What a step comes to is scripted: the n-th press of a key, and what the n-th look shows. Both must agree on every step
that ran, in order, with its round, code and detail, and on how the task ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_agent.driver.memory import MemoryPhone, Page
from droidfleet_agent.driver.port import Key, OutcomeUnknownError
from droidfleet_agent.engine.chance import drawn
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.run import Engine
from droidfleet_shared.clock import Deadline, VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.validate import validate_task
from support.runs import AGENT, Recorder
from support.screens import dump, node, window

Json = dict[str, Any]  # documents as they are written
Ran = tuple[str, str, int, StepCode, Detail]

LABELS = ("one", "two", "three")
MIN_STEPS, MAX_STEPS = 6, 20
MAX_DEPTH = 4
PRESSES = ("ok",) * 16 + ("denied",) * 3 + ("unknown",)

# The script.


def labels_at(script: int, look: int) -> frozenset[str]:
    """What the look with this number shows, from 1."""
    shown = Random(f"{script}/{look}").getrandbits(len(LABELS))
    return frozenset(label for place, label in enumerate(LABELS) if shown >> place & 1)


def press_at(script: int, press: int) -> str:
    """What comes of the press with this number, from 1."""
    return Random(f"{script}/press/{press}").choice(PRESSES)


def page(labels: frozenset[str]) -> str:
    rows = [
        node(label, (0, 100 * place, 900, 100 * place + 90)) for place, label in enumerate([*LABELS, "twin", "twin"])
    ]
    return dump(window(*(row for row in rows if row.text in labels or row.text == "twin")))


class ScriptedPhone(MemoryPhone):
    """Shows and does what the script says."""

    def __init__(self, script: int, clock: VirtualClock) -> None:
        super().__init__({"home": Page(dump(window()))}, start="home", clock=clock)
        self._script = script
        self._looks = self._presses = 0

    async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
        self._looks += 1
        return page(labels_at(self._script, self._looks))

    async def press(self, key: Key, *, deadline: Deadline) -> bool:
        self._presses += 1
        outcome = press_at(self._script, self._presses)
        if outcome == "unknown":
            raise OutcomeUnknownError("OUTCOME_UNKNOWN", "cut off")
        return outcome == "ok"


# The interpreter.

MAY_GO_ON = {"ACTION_FAILED", "VALUE_MISSING"}
MAY_SKIP = {"ACTION_FAILED"}
"""Of the codes that occur here."""


@dataclass
class Outcome:
    """``who``: the innermost step that failed."""

    code: str = "OK"
    detail: str = ""
    goto: str | None = None
    who: str | None = None


@dataclass
class Interpreter:
    """Runs a document by the letter of the protocol."""

    script: int
    seed: int
    ran: list[Ran] = field(default_factory=list)
    rounds: dict[str, int] = field(default_factory=dict)
    looks: int = 0
    presses: int = 0
    continued: bool = False

    def run_list(self, steps: list[Json], path: str, iteration: int) -> Outcome:
        place = 0
        while place < len(steps):
            step = steps[place]
            outcome = self.run_step(step, f"{path}/{place}", iteration)
            goto = outcome.goto
            if outcome.code != "OK":
                policy = step.get("onFailure", "STOP")
                if policy == "STOP" or outcome.code not in MAY_GO_ON:
                    return outcome
                self.continued = True
                goto = None if policy == "CONTINUE" else policy["goto"]
            place = place + 1 if goto is None else [each["id"] for each in steps].index(goto)
        return Outcome()

    def run_step(self, step: Json, path: str, iteration: int) -> Outcome:
        outcome = self.come_to(step, path, iteration)
        if outcome.code in MAY_SKIP and step.get("optional"):
            outcome = Outcome(detail="SKIPPED_OPTIONAL")
        self.ran.append((step["id"], path, iteration, StepCode(outcome.code), Detail(outcome.detail)))
        return outcome

    def come_to(self, step: Json, path: str, iteration: int) -> Outcome:
        if not drawn(step.get("probability", 100), seed=self.seed, path=path, iteration=iteration):
            return Outcome(detail="SKIPPED_BY_CHANCE")
        if step["action"] == "WAIT":  # its value is never there
            return Outcome("VALUE_MISSING", who=step["id"])
        if "when" in step and not self.holds(step["when"]):
            return Outcome(detail="WHEN_FALSE")
        do: Callable[[Json, str, int], Outcome] = getattr(self, step["action"].lower())
        return do(step, path, iteration)

    def back(self, step: Json, path: str, iteration: int) -> Outcome:
        self.presses += 1
        outcome = press_at(self.script, self.presses)
        if outcome == "ok":
            return Outcome(detail="DISPATCHED_UNVERIFIED")
        return Outcome("ACTION_FAILED" if outcome == "denied" else "OUTCOME_UNKNOWN", who=step["id"])

    def click(self, step: Json, path: str, iteration: int) -> Outcome:
        self.looks += 1
        return Outcome("TARGET_AMBIGUOUS", who=step["id"])

    def branch(self, step: Json, path: str, iteration: int) -> Outcome:
        if self.holds(step["condition"]):
            return Outcome(detail="JUMPED", goto=step["goto"])
        return Outcome(detail="NOT_JUMPED")

    def group(self, step: Json, path: str, iteration: int) -> Outcome:
        return self.inside(self.run_list(step["steps"], f"{path}/steps", iteration), "DONE")

    def if_(self, step: Json, path: str, iteration: int) -> Outcome:
        if self.holds(step["condition"]):
            return self.inside(self.run_list(step["then"], f"{path}/then", iteration), "THEN")
        return self.inside(self.run_list(step.get("else", []), f"{path}/else", iteration), "ELSE")

    def repeat(self, step: Json, path: str, iteration: int) -> Outcome:
        begun = 0
        while True:
            if "until" in step and self.holds(step["until"]):
                return Outcome(detail="UNTIL_HELD")
            if begun == step["maxIterations"]:
                return Outcome(detail="BOUND_REACHED")
            begun += 1
            self.rounds[path] = self.rounds.get(path, 0) + 1
            round_ = self.run_list(step["steps"], f"{path}/steps", self.rounds[path] - 1)
            if round_.code != "OK":
                return self.inside(round_, "")

    def inside(self, outcome: Outcome, detail: str) -> Outcome:
        return Outcome(detail=detail) if outcome.code == "OK" else Outcome(outcome.code, who=outcome.who)

    def holds(self, condition: Json) -> bool:
        if "output" in condition:
            return False
        self.looks += 1
        shown = labels_at(self.script, self.looks)
        return _holds(condition, shown)


setattr(Interpreter, "if", Interpreter.if_)


def _holds(condition: Json, shown: frozenset[str]) -> bool:
    [(kind, inner)] = condition.items()
    if kind == "visible":
        return inner["text"] in shown
    if kind == "gone":
        return inner["text"] not in shown
    if kind == "not":
        return not _holds(inner, shown)
    parts = [_holds(part, shown) for part in inner]
    return all(parts) if kind == "all" else any(parts)


# Random documents.

SELDOM = st.sampled_from([False] * 6 + [True])

_on_screen = st.recursive(
    st.builds(
        lambda kind, label: {kind: {"text": label}}, st.sampled_from(["visible", "gone"]), st.sampled_from(LABELS)
    ),
    lambda inner: st.one_of(
        st.builds(lambda part: {"not": part}, inner),
        st.builds(
            lambda kind, parts: {kind: parts}, st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=2)
        ),
    ),
    max_leaves=3,
)
CONDITIONS = st.one_of(_on_screen, st.just({"output": "never", "equals": "x"}))
LEAVES = ("BACK",) * 9 + ("BRANCH",) * 3 + ("WAIT", "CLICK")
CONTAINERS = ("GROUP", "IF", "REPEAT") * 5


@st.composite
def documents(draw: st.DrawFn) -> Json:
    """A valid task of `BACK`s and whatever walks between them."""
    left = [draw(st.integers(MIN_STEPS, MAX_STEPS))]

    def steps(depth: int) -> list[Json]:
        length = draw(st.integers(min(2, left[0]), 4)) if left[0] > 1 else 1
        left[0] -= length
        ids = [f"{'abcd'[depth]}{left[0]}-{place}" for place in range(length)]
        return [step(name, ids[place + 1 :], depth) for place, name in enumerate(ids)]

    def step(name: str, later: list[str], depth: int) -> Json:
        kinds = LEAVES + (CONTAINERS if depth + 1 < MAX_DEPTH and left[0] > 0 else ())
        action = draw(st.sampled_from(kinds))
        if action == "BRANCH" and not later:
            action = "BACK"
        made: Json = {"id": name, "action": action}
        match action:
            case "WAIT":
                made["selector"] = {"text": "${outputs.never}"}
            case "CLICK":
                made["selector"] = {"text": "twin"}
            case "BRANCH":
                made |= {"condition": draw(CONDITIONS), "goto": draw(st.sampled_from(later))}
            case "GROUP":
                made["steps"] = steps(depth + 1)
            case "IF":
                made |= {"condition": draw(CONDITIONS), "then": steps(depth + 1)}
                if draw(st.booleans()):
                    made["else"] = steps(depth + 1)
            case "REPEAT":
                made |= {"steps": steps(depth + 1), "maxIterations": draw(st.integers(1, 3))}
                if draw(st.booleans()):
                    made["until"] = draw(CONDITIONS)
        return made | options(later)

    def options(later: list[str]) -> Json:
        made: Json = {}
        if draw(SELDOM):
            made["when"] = draw(CONDITIONS)
        if draw(SELDOM):
            made["probability"] = draw(st.sampled_from([0, 50, 100]))
        if draw(SELDOM):
            made["optional"] = True
        jumps = [{"goto": name} for name in later]
        policy = draw(st.sampled_from(["STOP", "CONTINUE", "CONTINUE", *jumps]))
        return made if policy == "STOP" else {**made, "onFailure": policy}

    # `never` must be written by some step of the task for references to it to be known.
    writer = {
        "id": "writer",
        "action": "EXTRACT_TEXT",
        "selector": {"text": "one"},
        "outputField": "never",
        "probability": 0,
    }
    return {
        "schemaVersion": 1,
        "taskId": "t",
        "assignedAgentName": AGENT,
        "randomSeed": draw(st.integers(0, 1000)),
        "steps": [writer, *steps(0)],
    }


@given(document=documents(), script=st.integers(0, 10_000))
@settings(max_examples=500, deadline=None)
async def test_the_engine_walks_as_the_interpreter_does(document: Json, script: int) -> None:
    clock = VirtualClock()
    observer = Recorder()
    task = validate_task(json.dumps(document)).require()
    result = await Engine(ScriptedPhone(script, clock), clock=clock).run(
        task, execution_id="e", agent_name=AGENT, observer=observer, control=RunControl()
    )
    expected = Interpreter(script, document["randomSeed"])
    ended = expected.run_list(document["steps"], "/steps", 0)

    ran = [(each.id, each.path, each.iteration, each.code, each.detail) for each in observer.finished]
    assert ran == expected.ran
    assert (result.code, result.failed_step_id) == (StepCode(ended.code), ended.who)
    went_on = ended.code == "OK" and expected.continued
    assert (result.detail is Detail.FAILURES_CONTINUED) == went_on
    assert sum(each.looks for each in observer.finished) == expected.looks
    assert sum(each.dispatched for each in observer.finished) == expected.presses
