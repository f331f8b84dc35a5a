"""The rules of inputs, their values and the task's pictures, over the raw tree.

No message shows a value: it may be a secret, also where its declaration is wrong.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterator

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.suggestions import nearest
from droidfleet_shared.protocol.task import MAX_ARTIFACT_CHARACTERS, MAX_VALUE_CHARACTERS
from droidfleet_shared.protocol.wording import cut, listed, name, quoted

_WORDS = {
    "string": "a text",
    "secret": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "`true` or `false`",
}
_EXAMPLES = {"string": '"green tea"', "secret": '"..."', "integer": "3", "number": "2.5", "boolean": "true"}
_LARGEST = 2**53
"""Larger whole numbers are not kept exactly by every JSON reader."""

_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")


def value_findings(document: dict[str, Json]) -> Iterator[Finding]:
    """Everything wrong with `inputs` and `inputValues`. Nothing about what is not of the expected shape."""
    declared = document.get("inputs")
    given = document.get("inputValues")
    inputs = declared if isinstance(declared, dict) else {}
    values = given if isinstance(given, dict) else {}
    types = {each: _type(declaration) for each, declaration in inputs.items()}
    for each, declaration in inputs.items():
        if isinstance(declaration, dict) and declaration.get("default") is not None and types[each]:
            yield from _typed(("inputs", each, "default"), declaration["default"], types[each])
    if declared is None or isinstance(declared, dict):
        for each, value in values.items():
            if each not in inputs:
                yield _undeclared(each, list(inputs))
            elif types[each] and value is not None:
                yield from _typed(("inputValues", each), value, types[each])
    if "assignedAgentName" in document and (given is None or isinstance(given, dict)):
        yield from _missing(document, inputs, values)


def _type(declaration: Json) -> str:
    found = declaration.get("type") if isinstance(declaration, dict) else None
    return found if isinstance(found, str) and found in _WORDS else ""


def _typed(place: Place, value: Json, wanted: str) -> Iterator[Finding]:
    fits = {
        "string": isinstance(value, str),
        "secret": isinstance(value, str),
        "integer": type(value) is int,
        "number": type(value) in (int, float),
        "boolean": type(value) is bool,
    }[wanted]
    example = f"For example `{_EXAMPLES[wanted]}`."
    if not fits:
        kinds = {bool: "a truth value", int: "a whole number", float: "a number with a fraction", str: "a text"}
        found = kinds.get(type(value), "a list or an object")
        message = f"the input is of type `{wanted}`; found {found}, expected {_WORDS[wanted]}"
        yield Finding(place, ValidationCode.WRONG_TYPE, message, example)
    elif isinstance(value, str) and len(value) > MAX_VALUE_CHARACTERS:
        message = f"the value has {len(value):,} characters; at most {MAX_VALUE_CHARACTERS:,} are accepted"
        yield Finding(place, ValidationCode.OUT_OF_RANGE, message, "Give a shorter one.")
    elif isinstance(value, int | float) and (abs(value) > _LARGEST or not math.isfinite(value)):
        message = "the number is too large to be kept exactly"
        yield Finding(place, ValidationCode.OUT_OF_RANGE, message, "Make the input a `string`.")


def _undeclared(found: str, inputs: list[str]) -> Finding:
    if near := nearest(found, inputs):
        hint = f"Did you mean {name(near)}?"
    elif inputs:
        hint = f"The inputs are {listed([name(each) for each in inputs[:12]])}."
    else:
        hint = "The task declares no `inputs`; leave the value out, or declare the input."
    return Finding(("inputValues", found), ValidationCode.UNKNOWN_FIELD, f"no input {name(found)} is declared", hint)


def _missing(document: dict[str, Json], inputs: dict[str, Json], values: dict[str, Json]) -> Iterator[Finding]:
    place: Place = ("inputValues",) if "inputValues" in document else ()
    for each, declaration in inputs.items():
        if each not in values and isinstance(declaration, dict) and "default" not in declaration:
            message = f"the input {name(each)} has no default and no value"
            if _type(declaration) == "secret":
                hint = f"Give it with the run: {quoted(f'--secret {cut(each)}')}."
            else:
                example = _EXAMPLES.get(_type(declaration), '"..."')
                written = f'"inputValues": {{{json.dumps(cut(each), ensure_ascii=False)}: {example}}}'
                given = quoted(f"--input {cut(each)}=VALUE")
                hint = f"Give one with the run, {given}, or in the document: {quoted(written)}."
            yield Finding(place, ValidationCode.MISSING_FIELD, message, hint)


def artifact_findings(document: dict[str, Json], steps: list[tuple[Place, dict[str, Json]]]) -> Iterator[Finding]:
    """Pictures that are none, and `image` selectors that name no picture."""
    found = document.get("artifacts")
    artifacts = found if isinstance(found, dict) else {}
    for each, content in artifacts.items():
        if isinstance(content, str) and 0 < len(content) <= MAX_ARTIFACT_CHARACTERS and not _is_picture(content):
            message = "the content is not a PNG or JPEG in base64"
            hint = "Encode the file as it is; for example with `base64 -w0 icon.png`."
            yield Finding(("artifacts", each), ValidationCode.BAD_ARTIFACT, message, hint)
    if found is None or isinstance(found, dict):
        for place, step in steps:
            yield from _images(place, step, list(artifacts))


def _images(place: Place, step: dict[str, Json], artifacts: list[str]) -> Iterator[Finding]:
    todo: list[tuple[Place, Json]] = [((*place, field), value) for field, value in step.items() if field not in _LISTS]
    while todo:
        here, value = todo.pop()
        if isinstance(value, list):
            todo.extend(((*here, position), each) for position, each in enumerate(value))
        if not isinstance(value, dict):
            continue
        wanted = value.get("artifact") if here[-1] == "image" else None
        if isinstance(wanted, str) and wanted and wanted not in artifacts:
            near = nearest(wanted, artifacts)
            written = f'"artifacts": {{{json.dumps(cut(wanted), ensure_ascii=False)}: "<base64 of a PNG>"}}'
            known = (
                f"The artifacts are {listed([name(each) for each in artifacts[:12]])}."
                if artifacts
                else f"Add the picture at the top: {quoted(written)}."
            )
            hint = f"Did you mean {name(near)}? {known}" if near else known
            message = f"the task has no artifact {name(wanted)}"
            yield Finding((*here, "artifact"), ValidationCode.UNKNOWN_ARTIFACT, message, hint)
        todo.extend(((*here, field), each) for field, each in value.items())


_LISTS = frozenset({"steps", "then", "else"})


def _is_picture(content: str) -> bool:
    try:
        return base64.b64decode(content, validate=True).startswith(_MAGIC)
    except (binascii.Error, ValueError):
        return False
