"""``${...}`` in the texts of a raw document (protocol section 1): which there are, where they lead.

`${inputs.NAME}` and `${outputs.FIELD}` stand in the texts of steps; `$${` is a literal `${`. Names (ids, `goto`, ...)
hold none. Values of inputs are data: a `${` in them means itself. What a reference becomes is `values`' to know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.flow_rules import RawStep
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.output_rules import outputs_of
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.suggestions import nearest
from droidfleet_shared.protocol.values import IDENTIFIERS, REFERENCE, escaped
from droidfleet_shared.protocol.wording import cut, listed, name, quoted

_ANY = re.compile(r"\$\$\{|\$\{[^}]*\}?")
_LITERAL = "$${"
_MAX_SHOWN = 40
OUTPUT = "output"
"""The field of a condition that names an output."""

_DATA = frozenset({"inputs", "inputValues", "artifacts"})
"""Fields of a task in which nothing is a reference."""

_FORMS = "A reference is `${inputs.NAME}` or `${outputs.FIELD}`. A literal `${` is written `$${`."


@dataclass(frozen=True, slots=True)
class Known:
    """The names that references may lead to."""

    inputs: frozenset[str]
    secrets: frozenset[str]
    outputs: frozenset[str]


def known_names(document: dict[str, Json], steps: Collection[RawStep]) -> Known:
    """The inputs that a raw document declares, and the outputs that its steps write."""
    declared = document.get("inputs")
    inputs = declared if isinstance(declared, dict) else {}
    secrets = {each for each, value in inputs.items() if isinstance(value, dict) and value.get("type") == "secret"}
    outputs = {output for place, step in steps for _here, output in outputs_of(place, step)}
    return Known(frozenset(inputs), frozenset(secrets), frozenset(outputs))


def reference_findings(document: Json, known: Known) -> Iterator[Finding]:
    """Everything wrong with the references of a document."""
    todo: list[tuple[Place, Json]] = [((), document)]
    while todo:
        place, holder = todo.pop()
        inside = holder.items() if isinstance(holder, dict) else enumerate(holder) if isinstance(holder, list) else ()
        for token, value in inside:
            if not place and token in _DATA:
                continue
            if isinstance(value, str):
                if "${" in value:
                    yield from _in_text((*place, token), value, known)
                if token == OUTPUT and value and value not in known.outputs:
                    yield _unknown_output((*place, token), value, known)
            elif isinstance(value, dict | list):
                todo.append(((*place, token), value))


def _in_text(place: Place, text: str, known: Known) -> Iterator[Finding]:
    names = not place or place[0] != "steps" or place[-1] in IDENTIFIERS
    for found in _ANY.finditer(text):
        if found[0] == _LITERAL:
            continue
        shown = quoted(cut(found[0], limit=_MAX_SHOWN))
        whole = REFERENCE.fullmatch(found[0])
        if names:
            message = f"{shown} stands in a name, and names are taken as they are written"
            yield Finding(place, ValidationCode.UNKNOWN_REFERENCE, message, f"Write the name itself. {_FORMS}")
        elif whole is None:
            yield Finding(place, ValidationCode.UNKNOWN_REFERENCE, f"{shown} is not a reference that is known", _FORMS)
        elif whole[1] == "outputs" and whole[2] not in known.outputs:
            yield _unknown_output(place, whole[2], known)
        elif whole[1] == "inputs" and whole[2] not in known.inputs:
            message = f"no input {name(whole[2])} is declared"
            hint = _choice(whole[2], known.inputs, "inputs") or (
                f'Declare it; for example `"inputs": {{"{whole[2]}": {{"type": "string"}}}}`.'
            )
            yield Finding(place, ValidationCode.UNKNOWN_REFERENCE, message, hint)
        elif whole[2] in known.secrets and whole[1] == "inputs" and place[-1] != "value":
            message = f"the input {name(whole[2])} is a secret, and here it would be shown or looked for"
            hint = "A secret can only be typed: in `value` of an INPUT step. Make the input a `string` if it is none."
            yield Finding(place, ValidationCode.UNKNOWN_REFERENCE, message, hint)


def _unknown_output(place: Place, output: str, known: Known) -> Finding:
    hint = _choice(output, known.outputs, "outputs") or "Extract it with EXTRACT_TEXT or EXTRACT in a step before."
    message = f"no step writes an output {name(output)}"
    return Finding(place, ValidationCode.UNKNOWN_REFERENCE, message, hint)


def _choice(found: str, names: Collection[str], what: str) -> str:
    if not names:
        return ""
    ordered = sorted(names)
    near = nearest(found, ordered)
    every = f"The {what} are {listed([name(each) for each in ordered[:12]])}."
    return f"Did you mean {name(near)}? {every}" if near else every


def sample(text: str) -> str:
    """The text with something in the place of each reference: for checks that need no more."""
    return REFERENCE.sub(_put(lambda _found: "x"), text) if "$" in text else text


def sample_pattern(pattern: str) -> str:
    """The pattern with one of a letter in the place of each reference."""
    return REFERENCE.sub(_put(lambda _found: escaped("x")), pattern) if "$" in pattern else pattern


def sample_xpath(expression: str) -> str:
    """The expression with a string literal in the place of each reference."""
    return REFERENCE.sub(_put(lambda _found: "'x'"), expression) if "$" in expression else expression


def quoted_reference(expression: str) -> str:
    """The first reference that stands in quotes in an XPath expression; empty when there is none."""
    quote = ""
    for position, character in enumerate(expression):
        if quote and (found := REFERENCE.match(expression, position)) and found[0] != _LITERAL:
            return found[0]
        if character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
    return ""


def _put(value: Callable[[re.Match[str]], str]) -> Callable[[re.Match[str]], str]:
    return lambda found: "${" if found[0] == _LITERAL else value(found)
