"""The values of a run: what a call gives beside the task, and how it is written into the document's text. Pure.

A document is never parsed and printed again: a member that it has gets another value in its place, one that it lacks is
put behind the first brace. So nothing of the author's text is reordered or lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.jsontext import parse
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES
from droidfleet_shared.secrets import HIDDEN

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValues:
    """Values by the names of inputs, and the seed. ``secrets`` are kept apart, since they are forgotten at the end; one
    that is None is forgotten."""

    values: Mapping[str, Json] = field(default_factory=dict)
    secrets: Mapping[str, Json] = field(default_factory=dict)
    random_seed: int | None = None

    def __bool__(self) -> bool:
        return bool(self.values or self.secrets) or self.random_seed is not None

    def split(self, secret: frozenset[str]) -> RunValues:
        """The same with the values of the inputs ``secret`` among the secrets."""
        every = {**self.values, **self.secrets}
        return RunValues(
            values={name: value for name, value in every.items() if name not in secret},
            secrets={name: value for name, value in every.items() if name in secret},
            random_seed=self.random_seed,
        )

    def equals(self, asked: RunValues) -> bool:
        """Whether ``asked`` gives the same. A secret that is forgotten equals every other."""
        ours, theirs = {**self.values, **self.secrets}, {**asked.values, **asked.secrets}
        forgotten = {name for name, value in self.secrets.items() if value is None}
        return (
            self.random_seed == asked.random_seed
            and ours.keys() == theirs.keys()
            # As JSON, where 1 and true differ.
            and all(name in forgotten or json.dumps(ours[name]) == json.dumps(theirs[name]) for name in ours)
        )

    def shown(self) -> dict[str, Json]:
        """The values for people, in the order of their names."""
        return dict(sorted({**self.values, **dict.fromkeys(self.secrets, HIDDEN)}.items()))


def read_values(text: str, *, random_seed: int | None) -> RunValues:
    """What a call gives: ``text`` is a JSON object of values by name, or empty.

    Raises:
        InvalidInputError: ``INVALID_TASK``. No part of the text is repeated: it may hold secrets.
    """
    if not text:
        return RunValues(random_seed=random_seed)
    parsed = parse(text, max_bytes=MAX_DOCUMENT_BYTES)
    if parsed.findings or not isinstance(parsed.value, dict):
        issue = Issue(
            "/inputValues",
            ValidationCode.BAD_JSON,
            f"the values are not one JSON object of at most {MAX_DOCUMENT_BYTES // 1024} KiB, with each name once",
            'Send them as an object, for example `{"item": "green tea"}`.',
        )
        raise InvalidInputError("INVALID_TASK", f"{issue.path}: {issue.message}", hint=issue.hint, issues=(issue,))
    return RunValues(values=parsed.value, random_seed=random_seed)


def filled(body: str, given: RunValues) -> str:
    """The document with the values of a run over its own.

    Raises:
        ValueError: ``body`` is not a JSON object, or its `inputValues` is none: the validator says so better.
    """
    members: dict[str, Json] = {}
    given_values = {**given.values, **given.secrets}
    if given_values:
        members["inputValues"] = {**own_values(body), **given_values}
    if given.random_seed is not None:
        members["randomSeed"] = given.random_seed
    return written(body, members)


def own_values(body: str) -> dict[str, Json]:
    """The `inputValues` that stand in a document itself.

    Raises:
        ValueError: it is not a JSON object, or they are none.
    """
    place = _members(body).get("inputValues")
    if place is None:
        return {}
    value = json.loads(body[slice(*place)])
    if not isinstance(value, dict):
        raise ValueError("inputValues is not an object")
    return value


def written(body: str, members: Mapping[str, Json]) -> str:
    """The document with these members at its top: in the place of those that it has, else first.

    Raises:
        ValueError: it is not a JSON object.
    """
    if not members:
        return body
    places = _members(body)
    have = sorted((name for name in members if name in places), key=lambda name: places[name], reverse=True)
    for name in have:
        start, end = places[name]
        body = body[:start] + _json(members[name]) + body[end:]
    lacking = {name: value for name, value in members.items() if name not in places}
    if not lacking:
        return body
    brace = body.index("{") + 1
    return f"{body[:brace]}{_json(lacking)[1:-1]}{', ' if places else ''}{body[brace:]}"


def _members(text: str) -> dict[str, tuple[int, int]]:
    """Where the value of each member of the object ``text`` begins and ends."""
    places: dict[str, tuple[int, int]] = {}
    at = _after(text, "{", 0 if not text.startswith("\ufeff") else 1)
    while text[at : at + 1] != "}":
        if places:
            at = _after(text, ",", at)
        name, at = _DECODER.raw_decode(text, at)
        start = _after(text, ":", at)
        _, end = _DECODER.raw_decode(text, start)
        places[str(name)] = (start, end)
        at = _past_space(text, end)
    return places


def _after(text: str, mark: str, at: int) -> int:
    at = _past_space(text, at)
    if text[at : at + 1] != mark:
        raise ValueError(f"no {mark} where one has to be")
    return _past_space(text, at + 1)


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
