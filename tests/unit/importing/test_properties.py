"""Whatever a file holds, an import never crashes, and what it accepts is a valid task."""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.importing.generic import CHILDREN, TASK_TYPE, TYPES, import_generic
from droidfleet_controller.importing.generic_steps import LEAVES, SELECTOR_TYPES
from droidfleet_controller.importing.maestro import import_maestro
from droidfleet_controller.importing.maestro_commands import COMMANDS, NOT_SUPPORTED
from droidfleet_controller.importing.report import Imported, What
from droidfleet_controller.importing.sources import Form, form_of, import_file
from droidfleet_shared.protocol.pointers import Json
from unit.importing.documents import Object, checked

TEXT = st.text(max_size=12) | st.sampled_from(
    ["OK", "${x}", "$${", "com.a.b", "//a", "up", "home", "30%", "\x00", "👍"]
)
SCALAR: st.SearchStrategy[Json] = (
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
ANYTHING: st.SearchStrategy[Json] = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
Fields = dict[str, st.SearchStrategy[Json]]

GOOD: Fields = {
    "package": st.sampled_from(["com.a.b", "android"]),
    "wait_home": st.booleans(),
    "selector_type": st.sampled_from(SELECTOR_TYPES),
    "selector_value": st.text(min_size=1, max_size=12),
    "direction": st.sampled_from(["up", "DOWN", "left", "Right"]),
    "max_swipes": st.integers(1, 50) | st.just("7"),
    "duration_min": st.floats(0.05, 10),
    "duration_max": st.floats(0.05, 10) | st.integers(50, 10_000),
    "min": st.floats(0, 600),
    "max": st.floats(0, 600),
    "x": st.floats(1, 100),
    "y": st.integers(0, 100),
    "key": st.sampled_from(["home", "KEYCODE_BACK", 66, "224"]),
}


def container(steps: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """A step that holds steps."""
    inner: st.SearchStrategy[Json] = st.lists(steps, min_size=1, max_size=3)
    group = st.fixed_dictionaries({"type": st.just("group"), "params": st.fixed_dictionaries({"children": inner})})
    loop = st.fixed_dictionaries(
        {
            "type": st.just("loop"),
            "params": st.fixed_dictionaries(
                {"loop_mode": st.just("duration"), "duration": st.integers(1, 900), "children": inner}
            ),
        }
    )
    choice = st.fixed_dictionaries(
        {
            "type": st.just("if_el"),
            "params": st.fixed_dictionaries(
                {"selector_type": st.just("ocr"), "selector_value": GOOD["selector_value"], "then": inner},
                optional={"else": inner},
            ),
        }
    )
    return st.one_of(group, loop, choice)


def leaf(kind: str) -> st.SearchStrategy[Json]:
    """A step of that type that is mostly right."""
    return st.fixed_dictionaries(
        {
            "type": st.just(kind),
            "params": st.fixed_dictionaries({each: GOOD[each] for each in LEAVES[kind].params}),
        },
        optional={"id": TEXT | st.integers(), "label": TEXT, "probability": st.integers(2, 100)},
    )


LEAF = st.sampled_from(sorted(LEAVES)).flatmap(leaf)
STEPS = st.lists(st.recursive(LEAF, container, max_leaves=8), min_size=1, max_size=5)
SLOPPY_STEP = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(TYPES) | TEXT,
        "params": st.dictionaries(st.sampled_from([*GOOD, "children", "then", "else", "duration"]), ANYTHING)
        | ANYTHING,
        "id": ANYTHING,
        "label": ANYTHING,
        "probability": ANYTHING,
        **dict.fromkeys(CHILDREN, ANYTHING),
    },
)


def document(steps: Json) -> Object:
    """A whole document around steps."""
    return {"name": "t", "task_type": TASK_TYPE, "params": {"steps": steps}}


@given(STEPS)
def test_every_good_document_is_imported_or_refused_by_the_rules_of_the_protocol(steps: list[Json]) -> None:
    imported = checked(import_generic(document(steps), allow_points=True))
    codes = {entry.code for entry in imported.report if entry.what is What.REFUSED}
    assert codes <= {"TOO_DEEP", "TOO_MANY_STEPS", "BAD_XPATH", "EMPTY_SELECTOR", "BAD_VALUE", "OUT_OF_RANGE"}


@given(st.lists(st.recursive(SLOPPY_STEP | LEAF, container, max_leaves=6), max_size=4))
def test_no_steps_crash_an_import_and_what_is_accepted_is_valid(steps: list[Json]) -> None:
    checked(import_generic(document(steps), allow_points=True))


@given(
    st.dictionaries(st.sampled_from(["name", "task_type", "params", "schedule", "enabled"]) | TEXT, ANYTHING) | ANYTHING
)
def test_no_document_crashes_an_import(value: Json) -> None:
    checked(import_generic(value))


def fields(name: str) -> st.SearchStrategy[Json]:
    """A command with some of its fields."""
    return st.fixed_dictionaries(
        {name: st.fixed_dictionaries({}, optional=dict.fromkeys(COMMANDS[name].fields, TEXT | ANYTHING))}
    )


def containers(commands: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """A command that holds commands."""
    inner: Fields = {"commands": st.lists(commands, max_size=3)}
    looks: Fields = {"times": SCALAR, "while": st.dictionaries(st.sampled_from(["visible", "true"]), ANYTHING)}
    decides: Fields = {"when": st.dictionaries(st.sampled_from(["visible", "notVisible"]), TEXT), "label": TEXT}
    return st.one_of(
        st.fixed_dictionaries({"repeat": st.fixed_dictionaries(inner, optional=looks)}),
        st.fixed_dictionaries({"runFlow": st.fixed_dictionaries(inner, optional=decides)}),
    )


BARE: st.SearchStrategy[Json] = st.sampled_from([*COMMANDS, *NOT_SUPPORTED])
WILD: st.SearchStrategy[Json] = st.dictionaries(st.sampled_from([*COMMANDS, "fly"]), ANYTHING, min_size=1, max_size=1)
COMMAND = st.recursive(
    st.one_of(BARE, WILD, st.sampled_from(sorted(COMMANDS)).flatmap(fields)), containers, max_leaves=6
)


@given(st.lists(COMMAND, max_size=5))
def test_no_flow_crashes_an_import_and_what_is_accepted_is_valid(commands: list[Json]) -> None:
    # JSON is YAML, so that any tree can be written as a flow.
    text = f'{{"appId": "com.a.b"}}\n---\n{json.dumps(commands)}\n'
    checked(import_maestro(text, allow_points=True))


@given(st.binary(max_size=60) | st.text(alphabet="-:{}[]&*!%'\"\n tapOnback#|>", max_size=60).map(str.encode))
def test_no_bytes_crash_an_import(data: bytes) -> None:
    read: Callable[[Form], Imported] = lambda form: import_file(data, form=form, file="x")  # noqa: E731 - used twice
    for form in {*Form, form_of(data)}:
        checked(read(form))
