"""From what somebody writes on a command line to values for the inputs of a task, typed as the task declares them.

Whether values fit, are missing or too many is for the validator to say; here only what stands on the line is judged. A
secret never stands there: it comes from the environment, or is asked for on the terminal without echo.
"""

from __future__ import annotations

import getpass
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml

from droidfleet_shared.errors import DeniedError, InvalidInputError
from droidfleet_shared.protocol.jsontext import parse
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES

SECRET_ENV_PREFIX = "DROIDFLEET_SECRET_"  # noqa: S105  # of a name

MAX_DIGITS = 300
"""Of a number on the command line."""

_INTEGER = re.compile(rf"[+-]?[0-9]{{1,{MAX_DIGITS}}}")
_FRACTION = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_BOOLEANS = {"true": True, "false": False}


def declared_types(document: Json) -> Mapping[str, Json]:
    """The declared type of each input of a raw document, as far as it is readable."""
    inputs = document.get("inputs") if isinstance(document, dict) else None
    declared = inputs if isinstance(inputs, dict) else {}
    return {name: each.get("type") for name, each in declared.items() if isinstance(each, dict)}


def collect_values(
    declared: Mapping[str, Json],
    *,
    pairs: Sequence[str],
    file: str | None,
    secrets: Sequence[str],
    environ: Mapping[str, str] = os.environ,
    ask: Callable[[str], str] | None = None,
) -> dict[str, Json]:
    """Values by name: ``file`` first, ``pairs`` (``name=value``) over it, then ``secrets`` by their names.

    ``declared`` is what `declared_types` gives. ``ask``: asks a person for a secret; None: on the terminal, if there is
    one.

    Raises:
        InvalidInputError: ``BAD_INPUT``, ``FILE_UNREADABLE``, ``SECRET_MISSING``. No secret is repeated in it.
        DeniedError: ``SECRET_ON_COMMAND_LINE``.
    """
    values = {} if file is None else read_values_file(file)
    given: set[str] = set()
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InvalidInputError(
                "BAD_INPUT",
                "a value is not of the form name=value.",
                hint='Write --input name=value, for example --input "item=green tea".',
            )
        _once(name, given)
        values[name] = _open(name, text, declared.get(name))
    for name in secrets:
        _once(name, given)
        if declared.get(name, "secret") != "secret":
            raise InvalidInputError(
                "BAD_INPUT",
                f"the input {name!r} is declared as {declared[name]}, not as secret.",
                hint=f"Give it with --input {name}=..., or declare it as secret in the task.",
            )
        values[name] = _secret(name, environ, ask)
    return values


def read_values_file(file: str) -> dict[str, Json]:
    """The values in a JSON file (``.json``) or a YAML file: one object, name to text, number or truth value.

    Raises:
        InvalidInputError: ``FILE_UNREADABLE``, ``BAD_INPUT``. Nothing of the file is repeated: it may hold secrets.
    """
    try:
        with Path(file).open("rb") as stream:
            data = stream.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(
            "FILE_UNREADABLE",
            f"the file of values {file!r} cannot be read: {error.strerror}.",
            hint="Name an existing file.",
        ) from error
    if len(data) > MAX_DOCUMENT_BYTES:
        raise _bad_file(file, f"it is larger than {MAX_DOCUMENT_BYTES // 1024} KiB")
    if file.endswith(".json"):
        parsed = parse(data, max_bytes=MAX_DOCUMENT_BYTES)
        if parsed.findings:
            raise _bad_file(file, "it is not JSON, or names something twice")
        read: object = parsed.value
    else:
        read = _read_yaml(file, data)
    if not isinstance(read, dict):
        raise _bad_file(file, "it is not one object")
    for name, value in read.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float) or _infinite(value):
            raise _bad_file(file, f"{name!r} is not a name with a text, a number or a truth value")
    return read


def secret_variable(name: str) -> str:
    """The environment variable that may hold a secret: ``shop-pin`` is in ``DROIDFLEET_SECRET_SHOP_PIN``."""
    return SECRET_ENV_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def typed(name: str, text: str, kind: Json) -> Json:
    """A value that was written as text, as an input of type ``kind`` has it; of any other type it stays a text.

    Raises:
        InvalidInputError: ``BAD_INPUT``.
    """
    value: Json = None
    match kind:
        case "integer":
            value = int(text) if _INTEGER.fullmatch(text) else None
        case "number":
            if _INTEGER.fullmatch(text):
                value = int(text)
            elif len(text) <= MAX_DIGITS and _FRACTION.fullmatch(text) and not math.isinf(float(text)):
                value = float(text)
        case "boolean":
            value = _BOOLEANS.get(text)
        case _:
            # Not declared, or with a type that there is not: the validator says so, with the nearest name.
            value = text
    if value is None:
        expected = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}[str(kind)]
        raise InvalidInputError("BAD_INPUT", f"the input {name!r} needs {expected}, not {text!r}.")
    return value


def _open(name: str, text: str, kind: Json) -> Json:
    """A value that stands on the command line."""
    if kind == "secret":
        raise DeniedError(
            "SECRET_ON_COMMAND_LINE",
            f"the input {name!r} is a secret, and every user of this machine can read a command line.",
            hint=f"Write --secret {name}: its value is taken from {secret_variable(name)}, or asked for.",
        )
    return typed(name, text, kind)


def _secret(name: str, environ: Mapping[str, str], ask: Callable[[str], str] | None) -> str:
    variable = secret_variable(name)
    if environ.get(variable):
        return environ[variable]
    if ask is None and sys.stdin.isatty():
        ask = getpass.getpass
    value = ask(f"{name}: ") if ask is not None else ""
    if not value:
        raise InvalidInputError(
            "SECRET_MISSING",
            f"there is no value for the secret {name!r}.",
            hint=f"Set {variable}, or run this on a terminal, where it is asked for.",
        )
    return value


def _once(name: str, given: set[str]) -> None:
    if name in given:
        raise InvalidInputError("BAD_INPUT", f"the input {name!r} is given twice.", hint="Give it once.")
    given.add(name)


class _Loader(yaml.SafeLoader):
    """YAML in which a name stands once, as in JSON."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        names = [self.construct_object(name, deep=True) for name, _ in node.value]
        if len(set(map(str, names))) != len(names):
            raise yaml.YAMLError("a name stands twice")
        return super().construct_mapping(node, deep)


def _read_yaml(file: str, data: bytes) -> object:
    try:
        return yaml.load(data, _Loader)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        # Without the cause: it quotes the file.
        raise _bad_file(file, "it is not YAML, or names something twice") from None


def _infinite(value: str | float) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _bad_file(file: str, reason: str) -> InvalidInputError:
    return InvalidInputError(
        "BAD_INPUT",
        f"the file of values {file!r} cannot be used: {reason}.",
        hint=f"Write one object of names and values, for example {json.dumps({'item': 'green tea', 'count': 2})}.",
    )
