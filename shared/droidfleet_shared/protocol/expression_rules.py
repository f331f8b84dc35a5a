"""The rules of regular expressions and XPath in a raw document: each can be evaluated, and there are not too many.

Reading one costs up to 50 ms (`regexes.MAX_PATTERN_BYTES`), so their number is what bounds the time of a validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.names import MAX_PATTERN_LENGTH
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.references import quoted_reference, sample_pattern, sample_xpath
from droidfleet_shared.protocol.regexes import BadPatternError, compile_pattern
from droidfleet_shared.protocol.selector import MAX_XPATH_LENGTH
from droidfleet_shared.protocol.values import PATTERNS, REFERENCE, XPATH
from droidfleet_shared.protocol.wording import name, shown
from droidfleet_shared.protocol.xpaths import xpath_problem

MAX_PATTERNS = 100
"""Different regular expressions in one task: 5 seconds of validation when each is of the costliest kind."""

MAX_XPATHS = 400
"""Different XPath expressions in one task: two for each step; about a second when all are long."""

_SYNTAX = re.compile(
    r"""
    (?P<verbatim> \\Q.*?(?:\\E|$) )
  | (?P<escape> \\. )
  | (?P<reference> \$\$?\{[^}]*\} )
  | (?P<class> \[\^?\]?(?:\\.|[^\]\\])*(?:\]|$) )
  | (?P<count> \{(?:\$\{[^}]*\}|[^{}])*\} )
  | (?P<group> \(\?[^:)>]* )
    """,
    re.DOTALL | re.VERBOSE,
)
"""The parts of a pattern in which a value would become syntax, or be escaped twice; an escape and a reference that
stands by itself are in it so that they are passed over whole."""


def expression_findings(document: dict[str, Json]) -> Iterator[Finding]:
    """Everything wrong with the expressions of a document."""
    patterns: dict[str, list[Place]] = {}
    xpaths: dict[str, list[Place]] = {}
    for place, written in _texts(document.get("steps"), ("steps",)):
        if place[-1] in PATTERNS and 0 < len(written) <= MAX_PATTERN_LENGTH:
            patterns.setdefault(written, []).append(place)
        elif place[-1] == XPATH and 0 < len(written) <= MAX_XPATH_LENGTH:
            xpaths.setdefault(written, []).append(place)
    if len(patterns) > MAX_PATTERNS:
        yield _too_many("regular expressions", len(patterns), MAX_PATTERNS)
    else:
        for written, places in patterns.items():
            yield from _pattern(written, places)
    if len(xpaths) > MAX_XPATHS:
        yield _too_many("XPath expressions", len(xpaths), MAX_XPATHS)
    else:
        for written, places in xpaths.items():
            yield from _xpath(written, places)


def _texts(value: Json, place: Place) -> Iterator[tuple[Place, str]]:
    todo: list[tuple[Place, Json]] = [(place, value)]
    while todo:
        here, value = todo.pop()
        if isinstance(value, str):
            yield here, value
        elif isinstance(value, dict):
            todo.extend(((*here, field), each) for field, each in value.items())
        elif isinstance(value, list):
            todo.extend(((*here, position), each) for position, each in enumerate(value))


def _too_many(what: str, found: int, most: int) -> Finding:
    message = f"the task has {found} different {what}; at most {most} are accepted"
    return Finding(("steps",), ValidationCode.OUT_OF_RANGE, message, "Use literal fields, or split the task.")


def _reference_in_syntax(written: str) -> str:
    """The first reference that stands where a value cannot mean itself; empty when there is none."""
    for part in _SYNTAX.finditer(written):
        if part.lastgroup in ("escape", "reference"):
            continue
        for found in REFERENCE.finditer(part[0]):
            if found[1]:  # not `$${`
                return found[0]
    return ""


def _pattern(written: str, places: list[Place]) -> Iterator[Finding]:
    if reference := _reference_in_syntax(written):
        message = f"{name(reference)} stands in `[...]`, `{{...}}`, `(?...` or after `\\Q`, where no value means itself"
        hint = "Let it stand by itself: a value that is put into a pattern is a text that is matched as it is."
        for place in places:
            yield Finding(place, ValidationCode.BAD_REGEX, message, hint)
        return
    pattern = sample_pattern(written)
    try:
        compile_pattern(pattern)
    except BadPatternError as error:
        message = f"{shown(pattern)} is not accepted: {error.reason}"
        hint = "The pattern has to match the whole text. For a literal one use the field without `Matches`."
        for place in places:
            yield Finding(place, ValidationCode.BAD_REGEX, message, hint)


def _xpath(written: str, places: list[Place]) -> Iterator[Finding]:
    if reference := quoted_reference(written):
        message = f"{name(reference)} stands in quotes, and becomes a text of its own in `xpath`"
        hint = f"Write it without the quotes; for example `//node[@text={reference}]`."
    elif problem := xpath_problem(sample_xpath(written)):
        message = f"{shown(written)} is not accepted: {problem}"
        hint = 'For example `"xpath": "//android.widget.Button[@text=\'OK\']"`; other fields are usually clearer.'
    else:
        return
    for place in places:
        yield Finding(place, ValidationCode.BAD_XPATH, message, hint)
