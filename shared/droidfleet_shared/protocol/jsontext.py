"""Strict JSON: bytes or text to a raw tree, with everything that is wrong in its place.

What ordinary JSON readers let pass and what does harm later is refused here: repeated keys, NaN and Infinity, numbers
without end, lone surrogates, nesting without end. Python's own reader (in C) reads good documents; whatever it does not
like is read again by `jsonscan`, slowly, which knows the places. The two accept the same documents (a test says so).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NoReturn

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.jsonscan import MAX_NESTING, MAX_NUMBER_LENGTH, BrokenJsonError, scan
from droidfleet_shared.protocol.pointers import Json

_LONE_SURROGATE_POSSIBLE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was read. ``readable`` false: there is no tree. Else the tree is there beside the findings."""

    value: Json
    findings: tuple[Finding, ...] = ()
    readable: bool = True


class _SuspectError(Exception):
    """The fast reader saw something that only the slow one can place."""


def parse(text: str | bytes, *, max_bytes: int) -> Parsed:
    """Reads a document strictly. Never raises for bad input, and takes time linear in ``max_bytes`` at most."""
    if len(text) > max_bytes:  # a text has at least as many bytes as characters
        return _unreadable(ValidationCode.TOO_LARGE, *_size(len(text), max_bytes))
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        elif not text.isascii() and (size := len(text.encode("utf-8"))) > max_bytes:
            return _unreadable(ValidationCode.TOO_LARGE, *_size(size, max_bytes))
    except UnicodeError as error:
        return _unreadable(ValidationCode.BAD_JSON, *_not_utf8(error))
    text = text.removeprefix("\ufeff")  # a byte order mark says nothing in UTF-8; RFC 8259 lets readers ignore it
    try:
        value = _read_fast(text)
    except (_SuspectError, ValueError, RecursionError):
        try:
            value, findings = scan(text)
        except BrokenJsonError as error:
            return Parsed(None, tuple(error.findings), readable=False)
        return Parsed(value, tuple(findings))
    return Parsed(value)


def _read_fast(text: str) -> Json:
    if _LONE_SURROGATE_POSSIBLE.search(text):
        raise _SuspectError
    value: Json = _DECODER.decode(text)
    # Counting brackets (in strings too) is enough to clear most documents of deep nesting.
    if text.count("{") + text.count("[") > MAX_NESTING and _nests_deeper(value, MAX_NESTING):
        raise _SuspectError
    return value


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _SuspectError
    return value


def _integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER_LENGTH:
        raise _SuspectError
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if len(digits) > MAX_NUMBER_LENGTH or value in {float("inf"), float("-inf")}:
        raise _SuspectError
    return value


def _constant(_name: str) -> NoReturn:
    raise _SuspectError


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)


def _nests_deeper(value: Json, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _unreadable(code: ValidationCode, message: str, hint: str) -> Parsed:
    return Parsed(None, (Finding((), code, message, hint),), readable=False)


def _size(size: int, max_bytes: int) -> tuple[str, str]:
    return (
        f"the document has {size:,} bytes or more; at most {max_bytes:,} are accepted",
        "Split the task, or keep data such as long texts out of it.",
    )


def _not_utf8(error: UnicodeError) -> tuple[str, str]:
    if isinstance(error, UnicodeDecodeError):
        found = error.object[error.start : error.start + 1].hex()
        if error.object[:2] in {b"\xff\xfe", b"\xfe\xff"}:
            return "the document is UTF-16; UTF-8 is expected", "Save the file as UTF-8 without a byte order mark."
        return f"the document is not UTF-8: byte 0x{found} at offset {error.start}", "Save the file as UTF-8."
    at = error.start if isinstance(error, UnicodeEncodeError) else 0
    return (
        f"character {at} of the text is half of a character (a lone surrogate) and cannot be written as UTF-8",
        "Read the file as UTF-8 and strictly.",
    )
