"""Reads scenario files: YAML or JSON, shipped or the user's own, with a variant applied. Bounds come first."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from importlib import resources
from pathlib import Path

import yaml
from pydantic import JsonValue, ValidationError

from droidfleet_agent.virtual_phone.scenario.check import check
from droidfleet_agent.virtual_phone.scenario.generate import expand
from droidfleet_agent.virtual_phone.scenario.issues import (
    Issue,
    IssueCode,
    Place,
    ScenarioError,
    did_you_mean,
    issues_of,
    pointer,
)
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_agent.virtual_phone.scenario.variants import apply_variant

MAX_BYTES = 1_000_000
"""Of one file; the richest shipped scenario has some tens of kilobytes."""
MAX_VALUES = 50_000
"""JSON values in one document after YAML aliases are expanded: an alias bomb ends here."""
MAX_DEPTH = 60
"""Nesting; a screen nests about twenty levels."""

_SHIPPED = resources.files("droidfleet_agent.virtual_phone") / "scenarios"


def shipped_scenarios() -> tuple[str, ...]:
    """Names of the scenarios inside the package, sorted."""
    return tuple(sorted(item.name.removesuffix(".yaml") for item in _SHIPPED.iterdir() if item.name.endswith(".yaml")))


def load_scenario(name_or_path: str | Path, *, variant: str | None = None) -> Scenario:
    """The scenario of a shipped name (``shop``) or a file, with one of its variants applied.

    Raises `ScenarioError` (an `InvalidInputError` with ``issues``) for anything wrong with it.
    """
    name = str(name_or_path)
    if name in shipped_scenarios():
        return _shipped(name, variant)
    path = Path(name_or_path)
    try:
        size = path.stat().st_size
        text = path.read_bytes() if size <= MAX_BYTES else b""
    except OSError as error:
        hint = did_you_mean(name, shipped_scenarios()) or f"Shipped scenarios: {', '.join(shipped_scenarios())}."
        raise ScenarioError(name, [Issue("", IssueCode.BAD_FILE, f"{error.strerror or error}.", hint)]) from None
    if size > MAX_BYTES:
        message = f"The file has {size} bytes; at most {MAX_BYTES} are allowed."
        raise ScenarioError(name, [Issue("", IssueCode.TOO_LARGE, message)])
    return parse_scenario(text, source=name, variant=variant)


@lru_cache(maxsize=32)
def _shipped(name: str, variant: str | None) -> Scenario:
    """Scenarios are frozen, so that the phones of one process share them."""
    return parse_scenario((_SHIPPED / f"{name}.yaml").read_bytes(), source=name, variant=variant)


def parse_scenario(text: bytes | str, *, source: str = "scenario", variant: str | None = None) -> Scenario:
    """Like `load_scenario`, from the file's content."""
    if len(text) > MAX_BYTES:
        message = f"The document has {len(text)} bytes; at most {MAX_BYTES} are allowed."
        raise ScenarioError(source, [Issue("", IssueCode.TOO_LARGE, message)])
    document = _read(text, source)
    issues: list[Issue] = []
    if variant is not None:
        document, issues = apply_variant(document, variant)
    issues += expand(document)
    if issues:
        raise ScenarioError(source, issues)
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as error:
        raise ScenarioError(source, issues_of(error, document)) from None
    issues = check(scenario)
    if issues:
        raise ScenarioError(source, issues)
    return scenario


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]  # either
    """Refuses a key that is written twice in one mapping, which YAML would take silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is no text; put it in quotes", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' is there twice", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[object, object] = super().construct_mapping(node, deep=deep)
        return mapping


def _read(text: bytes | str, source: str) -> dict[str, JsonValue]:
    # The safe loader constructs plain data only; JSON is read by it too, being a part of YAML.
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506  # _Loader is a safe loader
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ScenarioError(source, [Issue("", IssueCode.BAD_YAML, " ".join(str(error).split()))]) from None
    if not isinstance(document, dict):
        raise ScenarioError(source, [Issue("", IssueCode.WRONG_TYPE, "The document must be a mapping.")])
    issue = _measure(document)
    if issue is not None:
        raise ScenarioError(source, [issue])
    # A deep copy by way of text: nothing is shared through YAML aliases, so a patch changes one place only.
    copy: dict[str, JsonValue] = json.loads(json.dumps(document, default=str))
    return copy


def _measure(document: JsonValue) -> Issue | None:
    count = 0
    stack: list[tuple[JsonValue, Place]] = [(document, ())]
    while stack:
        value, place = stack.pop()
        count += 1
        if count > MAX_VALUES:
            return Issue("", IssueCode.TOO_LARGE, f"The document holds more than {MAX_VALUES} values.")
        if len(place) > MAX_DEPTH:
            return Issue(pointer(place[:8]), IssueCode.TOO_DEEP, f"Nested deeper than {MAX_DEPTH} levels.")
        if isinstance(value, float) and not math.isfinite(value):
            return Issue(pointer(place), IssueCode.BAD_VALUE, "NaN and infinity are not allowed.")
        if isinstance(value, dict):
            stack.extend((inner, (*place, key)) for key, inner in value.items())
        elif isinstance(value, list):
            stack.extend((inner, (*place, index)) for index, inner in enumerate(value))
    return None
