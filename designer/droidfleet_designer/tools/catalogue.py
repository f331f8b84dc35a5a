"""Which tools there are, and how a model is told of them. Pure, but for the prompt files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from pydantic import JsonValue

from droidfleet_designer.model.port import ToolSpec
from droidfleet_designer.prompts.load import prompt
from droidfleet_designer.tools.arguments import (
    Arguments,
    Back,
    FindText,
    ListDevices,
    ListGroups,
    LongPress,
    Look,
    OpenApp,
    PressKey,
    Scroll,
    StopApp,
    SubmitTask,
    Swipe,
    Tap,
    TapPoint,
    TypeText,
    Wait,
)

SUBMIT = "submit_task"
TAP_POINT = "tap_point"

TOOLS: Mapping[str, type[Arguments]] = {
    "list_devices": ListDevices,
    "list_groups": ListGroups,
    "open_app": OpenApp,
    "stop_app": StopApp,
    "screen": Look,
    "tap": Tap,
    TAP_POINT: TapPoint,
    "long_press": LongPress,
    "type_text": TypeText,
    "press_key": PressKey,
    "back": Back,
    "scroll": Scroll,
    "swipe": Swipe,
    "wait": Wait,
    "find_text": FindText,
    SUBMIT: SubmitTask,
}

_SECTION = re.compile(r"^# (\w+)\n(.*?)(?=^# |\Z)", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^- `(\w+)`[::]\s*(.+)$", re.MULTILINE)


def offered(*, allow_points: bool) -> Mapping[str, type[Arguments]]:
    """The tools that there are where points of the display may, or may not, be touched."""
    return {name: each for name, each in TOOLS.items() if allow_points or name != TAP_POINT}


@lru_cache(maxsize=4)
def specs(language: str, *, allow_points: bool) -> Sequence[ToolSpec]:
    """The tools as a model is told of them, in the words of `prompts/tools.LANGUAGE.md`."""
    told = dict(_SECTION.findall(prompt("tools", language)))
    return tuple(_spec(name, model, told[name]) for name, model in offered(allow_points=allow_points).items())


def _spec(name: str, model: type[Arguments], told: str) -> ToolSpec:
    fields = dict(_FIELD.findall(told))
    return ToolSpec(name, told.partition("\n- `")[0].strip(), parameters_of(model, fields))


def parameters_of(model: type[Arguments], described: Mapping[str, str]) -> dict[str, JsonValue]:
    """The JSON Schema of a tool's arguments. ``described``: what each field means."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    properties: dict[str, JsonValue] = {
        field: {**_plain(each, definitions), "description": described[field]}
        for field, each in schema.get("properties", {}).items()
    }
    parameters: dict[str, JsonValue] = {"type": "object", "properties": properties, "additionalProperties": False}
    if "required" in schema:
        parameters["required"] = schema["required"]
    return parameters


def _plain(schema: dict[str, JsonValue], definitions: Mapping[str, dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """The schema without references, titles and nulls: not every server of models knows these, and none needs them."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _plain(definitions[reference.rpartition("/")[2]], definitions)
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        [only] = [each for each in choices if isinstance(each, dict) and each.get("type") != "null"]
        kept = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
        return _plain({**only, **kept}, definitions)
    plain: dict[str, JsonValue] = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            plain[key] = {
                name: _plain(each, definitions) if isinstance(each, dict) else each for name, each in value.items()
            }
        elif key == "items" and isinstance(value, dict):
            plain[key] = _plain(value, definitions)
        elif key == "additionalProperties":
            plain[key] = value is not False  # what is neither forbidden nor a field may be any JSON
        elif key != "title":
            plain[key] = value
    return plain
