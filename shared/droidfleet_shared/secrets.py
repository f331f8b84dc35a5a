"""Keeping secrets of a document out of what is said about it.

Owns the word that stands in a secret's place, and which values of a raw document nobody may read. Results of runs are
the engine's to redact (`droidfleet_agent.engine.redact`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.pointers import Json, Place, pointer

HIDDEN = "[secret]"

SHORTEST = 4
"""Characters of a value that is replaced wherever it appears; shorter ones are in every other word."""

_OPEN_TYPES = frozenset({"string", "integer", "number", "boolean"})

_ABOUT_NAMES = frozenset({ValidationCode.UNKNOWN_FIELD, ValidationCode.UNKNOWN_REFERENCE, ValidationCode.MISSING_FIELD})
"""Codes of issues that speak of a value's name; the others describe the value itself, and may show a part of it."""


def concealed(issues: Sequence[Issue], document: Json) -> tuple[Issue, ...]:
    """The issues of a raw ``document`` without the values of its secrets.

    What is given for an input that is not declared, or not with a type that there is, counts as one.
    """
    hidden = _hidden(document)
    if not hidden:
        return tuple(issues)
    texts = sorted({form for value in hidden.values() for form in _forms(value)}, key=len, reverse=True)
    paths = {pointer(place) for place in hidden}
    return tuple(_concealed(issue, texts, paths) for issue in issues)


def without(text: str, secrets: Sequence[str]) -> str:
    """``text`` with `HIDDEN` for every secret of at least `SHORTEST` characters, the longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def _concealed(issue: Issue, texts: Sequence[str], paths: set[str]) -> Issue:
    message = without(issue.message, texts)
    if issue.code not in _ABOUT_NAMES and any(
        issue.path == path or issue.path.startswith(f"{path}/") for path in paths
    ):
        message = "the secret value does not fit its declaration: a secret is a text"
    return replace(issue, message=message, hint=without(issue.hint, texts))


def _hidden(document: Json) -> dict[Place, Json]:
    """The values that nobody may read, by their places."""
    declared = _object(document, "inputs")
    found: dict[Place, Json] = {
        ("inputValues", name): value
        for name, value in _object(document, "inputValues").items()
        if _type(declared.get(name)) not in _OPEN_TYPES
    }
    for name, declaration in declared.items():
        if isinstance(declaration, dict) and _type(declaration) == "secret" and "default" in declaration:
            found["inputs", name, "default"] = declaration["default"]
    return found


def _type(declaration: Json) -> Json:
    return declaration.get("type") if isinstance(declaration, dict) else None


def _object(document: Json, field: str) -> dict[str, Json]:
    value = document.get(field) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}


def _forms(value: Json) -> tuple[str, ...]:
    written = json.dumps(value, ensure_ascii=False)
    return (value, written, written[1:-1]) if isinstance(value, str) else (written, str(value))
