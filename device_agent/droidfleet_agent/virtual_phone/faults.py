"""The fault plan: what goes wrong, at which call, how often. Data with clear errors, and the pure decision.

A fault names the calls it is about (``on``), which of them (``nth``, ``times``) and what happens (``do``). The effects
are the wire's; the few that the phone itself shows (a tap swallowed, content that moves) are the model's knobs.
"""

from __future__ import annotations

import difflib
import re
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from droidfleet_agent.virtual_phone.calls import GROUPS, RPC_CALLS, SHELL_PREFIX, Call, Place
from droidfleet_shared.errors import InvalidInputError

MAX_FAULTS = 1_000
MAX_FILE_BYTES = 1_000_000
MAX_SECONDS = 3_600.0
FIRED_KEPT = 1_000
"""Fired faults remembered for tests and people; older ones are forgotten."""


class FaultKind(StrEnum):
    """What goes wrong. The table of `docs/virtual-phone.md` says how each looks to a client."""

    HANG = "hang"
    DROP = "drop"
    REFUSE = "refuse"
    KILL_SERVER = "kill_server"
    OFFLINE = "offline"
    SLOW = "slow"
    HTTP_ERROR = "http_error"
    CUT_ANSWER = "cut_answer"
    NOT_CONNECTED = "not_connected"
    DEAD_OBJECT = "dead_object"
    STALE = "stale"
    NOT_FOUND = "not_found"
    FALSE = "false"
    CUT = "cut"
    REPEAT_ATTRIBUTE = "repeat_attribute"
    ALREADY_REGISTERED = "already_registered"
    SWALLOW = "swallow"
    MOVE = "move"
    LOSE_CHARACTER = "lose_character"


_ANSWERED = frozenset({Place.SHELL, Place.HTTP, Place.RPC})
_REQUESTS = frozenset({Place.HTTP, Place.RPC})
_RPC = frozenset({Place.RPC})

_PLACES = MappingProxyType(
    {
        FaultKind.HANG: frozenset({Place.CONNECT, Place.OPEN}) | _ANSWERED,
        FaultKind.DROP: _ANSWERED,
        FaultKind.REFUSE: frozenset({Place.CONNECT, Place.OPEN}),
        FaultKind.KILL_SERVER: _REQUESTS,
        FaultKind.OFFLINE: frozenset({Place.CONNECT, Place.OPEN}) | _ANSWERED,
        FaultKind.SLOW: frozenset({Place.OPEN, Place.SERVER_START}) | _ANSWERED,
        FaultKind.HTTP_ERROR: _REQUESTS,
        FaultKind.CUT_ANSWER: _REQUESTS,
        FaultKind.NOT_CONNECTED: _RPC,
        FaultKind.DEAD_OBJECT: _RPC,
        FaultKind.STALE: _RPC,
        FaultKind.NOT_FOUND: _RPC,
        FaultKind.FALSE: _RPC,
        FaultKind.CUT: _RPC,
        FaultKind.REPEAT_ATTRIBUTE: _RPC,
        FaultKind.ALREADY_REGISTERED: frozenset({Place.SERVER_START}),
        FaultKind.SWALLOW: _RPC,
        FaultKind.MOVE: _RPC,
        FaultKind.LOSE_CHARACTER: _RPC,
    }
)

_NEEDS_SECONDS = frozenset({FaultKind.SLOW, FaultKind.OFFLINE})
_HAS_AFTER = frozenset({FaultKind.HANG, FaultKind.DROP, FaultKind.KILL_SERVER, FaultKind.OFFLINE})
DUMP_METHOD = "dumpWindowHierarchy"
_ONLY_ON = MappingProxyType(
    {
        FaultKind.CUT: frozenset({DUMP_METHOD}),
        FaultKind.REPEAT_ATTRIBUTE: frozenset({DUMP_METHOD}),
        FaultKind.MOVE: frozenset({DUMP_METHOD}),
        FaultKind.SWALLOW: frozenset({"tap", "first_tap", "click"}),
        FaultKind.LOSE_CHARACTER: frozenset({"setText"}),
    }
)


class Fault(BaseModel):
    """One thing that goes wrong.

    ``on``: an RPC method name, a name of `calls.GROUPS`, or ``shell:TEXT``. ``nth``: the first matching call that is
    hit, from 1. ``times``: how many matching calls in a row are hit; null for all from then on. ``seconds``: the length
    of ``slow`` and ``offline``. ``after``: the call is carried out and only its answer is lost (for ``hang``,
    ``drop``, ``kill_server``, ``offline``). ``pixels``: how far ``move`` shifts the content.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    on: Annotated[str, Field(min_length=1, max_length=200)]
    do: FaultKind
    nth: Annotated[int, Field(ge=1)] = 1
    times: Annotated[int, Field(ge=1)] | None = 1
    seconds: Annotated[float, Field(gt=0, le=MAX_SECONDS)] | None = None
    after: bool = False
    pixels: Annotated[int, Field(ge=1, le=10_000)] = 90

    @field_validator("do", mode="before")
    @classmethod
    def _false_is_a_kind(cls, value: object) -> object:
        # YAML reads `do: false` as the boolean.
        return FaultKind.FALSE if value is False else value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        place = place_of(self.on)
        if place not in _PLACES[self.do]:
            raise ValueError(f"`{self.do}` cannot happen on `{self.on}`; it can on {_can_happen_on(self.do)}")
        only = _ONLY_ON.get(self.do)
        if only is not None and self.on not in only:
            raise ValueError(f"`{self.do}` can only happen on {_listed(only)}")
        if self.do in _NEEDS_SECONDS and self.seconds is None:
            raise ValueError(f"`{self.do}` needs `seconds`")
        if self.seconds is not None and self.do not in _NEEDS_SECONDS:
            raise ValueError(f"`seconds` has no meaning for `{self.do}`")
        if self.after and self.do not in _HAS_AFTER:
            raise ValueError(f"`after` has no meaning for `{self.do}`; it has for {_listed(_HAS_AFTER)}")
        if self.after and place not in _ANSWERED:
            raise ValueError(f"`after` has no meaning on `{self.on}`: nothing is carried out there")
        return self

    def is_about(self, names: Collection[str], text: str) -> bool:
        """Whether a call of these names is meant; ``text`` is the command line of a shell call."""
        if self.on.startswith(SHELL_PREFIX):
            return "shell" in names and text.startswith(self.on[len(SHELL_PREFIX) :])
        return self.on in names


def place_of(name: str) -> Place:
    """Where calls of this name are met. Raises `ValueError` for a name that is neither a group nor a method."""
    if name.startswith(SHELL_PREFIX):
        return Place.SHELL
    if name in GROUPS:
        return GROUPS[name][0]
    if name in RPC_CALLS:
        return Place.RPC
    near = difflib.get_close_matches(name, [*GROUPS, *RPC_CALLS], n=1)
    raise ValueError(f"`{name}` is no call" + (f"; did you mean `{near[0]}`?" if near else ""))


def decide(
    plan: Sequence[Fault], seen: Sequence[int], names: Collection[str], text: str
) -> tuple[int | None, list[int]]:
    """Which fault hits this call, by its place in the plan, and the counts of matching calls afterwards.

    ``seen[i]`` is how many matching calls fault i has met before. Every matching fault counts the call; the first that
    is due hits it.
    """
    hit: int | None = None
    counts = list(seen)
    for position, fault in enumerate(plan):
        if not fault.is_about(names, text):
            continue
        counts[position] += 1
        due = counts[position] >= fault.nth and (fault.times is None or counts[position] < fault.nth + fault.times)
        if due and hit is None:
            hit = position
    return hit, counts


@dataclass(frozen=True, slots=True)
class FaultIssue:
    """One thing wrong with a fault plan. ``path`` says where, such as ``/faults/2/seconds``."""

    path: str
    message: str
    code: str = "BAD_FAULT"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True)
class Fired:
    """A fault that hit a call."""

    fault: Fault
    call: str


class FaultPlan:
    """The faults of one phone and how far each has got. Faults may be added while the phone runs."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._faults: tuple[Fault, ...] = ()
        self._seen: list[int] = []
        self._fired: deque[Fired] = deque(maxlen=FIRED_KEPT)
        self.add(*faults)

    @property
    def active(self) -> bool:
        """Whether there is any fault: the common case is none, and then nothing need be asked."""
        return bool(self._faults)

    @property
    def fired(self) -> tuple[Fired, ...]:
        """The faults that have hit, oldest first."""
        return tuple(self._fired)

    def add(self, *faults: Fault) -> None:
        """Adds faults at the end; they count calls from now on."""
        self._seen = [*self._seen, *(0 for _ in faults)]
        self._faults = (*self._faults, *faults)

    def clear(self) -> None:
        """Removes every fault. What has fired stays listed."""
        self._faults = ()
        self._seen = []

    def take(self, call: Call, text: str = "") -> Fault | None:
        """The fault that hits this call, which is thereby counted. ``text`` is the command line of a shell call."""
        if not self._faults:
            return None
        hit, self._seen = decide(self._faults, self._seen, call.names, text)
        if hit is None:
            return None
        fault = self._faults[hit]
        self._fired.append(Fired(fault, text or call.name))
        return fault


class _Loader(yaml.SafeLoader):
    """Safe, and with `true` and `false` alone as booleans: YAML 1.1 takes the key ``on`` for one, too."""


_BOOLEAN = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOLEAN]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOLEAN, re.compile("^(?:true|false)$"), list("tf"))


def load_faults(path: Path) -> list[Fault]:
    """The faults of a YAML or JSON file: a list, or a mapping with ``faults``.

    Raises `InvalidInputError` (``FAULTS_INVALID``) whose ``issues`` name everything that is wrong with it.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise _invalid(path, [FaultIssue("", f"larger than {MAX_FILE_BYTES} bytes")])
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506  # a SafeLoader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _invalid(path, [FaultIssue("", " ".join(str(error).split()))]) from error
    return parse_faults(document, source=path)


def parse_faults(document: object, *, source: Path | None = None) -> list[Fault]:
    """The same, from data already read."""
    faults = document.get("faults") if isinstance(document, dict) else document
    try:
        return _FAULTS.validate_python(faults)
    except ValidationError as error:
        issues = [FaultIssue(_where(e["loc"]), e["msg"].removeprefix("Value error, ")) for e in error.errors()]
        raise _invalid(source, issues) from error


_FAULTS: TypeAdapter[list[Fault]] = TypeAdapter(Annotated[list[Fault], Field(max_length=MAX_FAULTS)])


def _where(location: Sequence[int | str]) -> str:
    return "/faults" + "".join(f"/{part}" for part in location)


def _invalid(source: Path | None, issues: list[FaultIssue]) -> InvalidInputError:
    return InvalidInputError(
        "FAULTS_INVALID",
        f"The fault plan{f' {source}' if source else ''} cannot be used: {'; '.join(map(str, issues))}.",
        hint="docs/virtual-phone.md lists the faults and the calls they can be about.",
        issues=issues,
    )


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in sorted(words))


def _can_happen_on(kind: FaultKind) -> str:
    places = _PLACES[kind]
    groups = [name for name, (place, _) in GROUPS.items() if place in places]
    return _listed(groups) + (" and JSON-RPC method names" if Place.RPC in places else "")
