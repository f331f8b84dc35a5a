"""What a person types into the recorder, read. Pure.

A node is meant by its number in the list, or by its text in double quotes (as JSON writes it).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.steps.touching import KeyName

Direction = Literal["UP", "DOWN", "LEFT", "RIGHT"]

HELP = """a number, or "TEXT"   tap that node
t NODE TEXT           type the text into a field, in place of what it holds
b                     Back
k KEY                 press a key: HOME, ENTER, RECENTS, SEARCH, ...
s [up|down|left|right]  scroll; what you choose next is then scrolled to
w NODE                wait until the node is there
x NODE NAME           read the node's text into the output NAME
o PACKAGE             open an app
u                     take the last step out of the recording (the phone stays as it is)
Enter                 look again
q                     save and end
NODE is a number of the list, or a text in double quotes."""


@dataclass(frozen=True, slots=True)
class NodeWord:
    """A node as it was typed: its number in the list, or a text."""

    number: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Tap:
    node: NodeWord


@dataclass(frozen=True, slots=True)
class Type:
    node: NodeWord
    text: str


@dataclass(frozen=True, slots=True)
class Back:
    pass


@dataclass(frozen=True, slots=True)
class Press:
    key: str


@dataclass(frozen=True, slots=True)
class Scroll:
    direction: Direction


@dataclass(frozen=True, slots=True)
class WaitFor:
    node: NodeWord


@dataclass(frozen=True, slots=True)
class Read:
    node: NodeWord
    output: str


@dataclass(frozen=True, slots=True)
class Open:
    package: str


@dataclass(frozen=True, slots=True)
class Undo:
    pass


@dataclass(frozen=True, slots=True)
class Look:
    pass


@dataclass(frozen=True, slots=True)
class Help:
    pass


@dataclass(frozen=True, slots=True)
class Quit:
    pass


Action = Tap | Type | Back | Press | Scroll | WaitFor | Read | Open
Command = Action | Undo | Look | Help | Quit

_ALONE: Mapping[str, Command] = {"b": Back(), "u": Undo(), "q": Quit(), "?": Help()}
_DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
_WORD = re.compile(r"(\S+)[ \t]?(.*)", re.DOTALL)
_OUTPUT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read(line: str) -> Command:  # noqa: PLR0911 - one for each command
    """The command of a line. White space at its ends does not count, but for what is typed after the field.

    Raises:
        InvalidInputError: ``BAD_COMMAND``, saying what was expected.
    """
    line = line.rstrip("\r\n").lstrip()
    if not line.strip():
        return Look()
    if line[0] == '"' or line[0].isdecimal():
        node, rest = _node(line)
        _nothing(rest)
        return Tap(node)
    found = _WORD.fullmatch(line)
    word, rest = (found[1], found[2]) if found else (line, "")
    match word:
        case "t":
            node, text = _node(rest)
            return Type(node, text)
        case "w":
            node, rest = _node(rest)
            _nothing(rest)
            return WaitFor(node)
        case "x":
            node, rest = _node(rest)
            return Read(node, _output(rest.strip()))
        case "k":
            return Press(_key(_argument(rest, "k KEY")))
        case "o":
            return Open(_argument(rest, "o PACKAGE"))
        case "s":
            return Scroll(_direction(rest.strip()))
        case _ if word in _ALONE:
            _nothing(rest)
            return _ALONE[word]
        case _:
            raise _bad(f"{word[:40]!r} is no command")


def _node(text: str) -> tuple[NodeWord, str]:
    """The node at the beginning, and what follows it after one blank."""
    if text.startswith('"'):
        try:
            label, end = json.JSONDecoder().raw_decode(text)
        except ValueError:
            raise _bad('a text in double quotes ends with `"`; within it `"` is written `\\"`') from None
        return NodeWord(text=str(label)), _after(text[end:])
    found = re.match(r"[0-9]{1,6}(?=\s|$)", text)
    if found is None:
        raise _bad("a node is a number of the list or a text in double quotes")
    return NodeWord(number=int(found[0])), _after(text[found.end() :])


def _after(rest: str) -> str:
    if rest and not rest[0].isspace():
        raise _bad("after the node comes a blank")
    return rest[1:]


def _argument(rest: str, usage: str) -> str:
    if len(rest.split()) != 1:
        raise _bad(f"it is written `{usage}`")
    return rest.strip()


def _key(word: str) -> str:
    key = word.upper().removeprefix("KEYCODE_")
    if key == "BACK":
        raise _bad("the Back key is `b`")
    if key not in tuple(KeyName):
        raise _bad(f"{word[:40]!r} is no key; there are {', '.join(KeyName)}")
    return key


def _output(name: str) -> str:
    if not _OUTPUT.fullmatch(name):
        raise _bad("it is written `x NODE NAME`, with a name of letters, digits and `_`")
    return name


def _direction(word: str) -> Direction:
    wanted = (word or "down").upper()
    for direction in _DIRECTIONS:
        if wanted == direction:
            return direction
    raise _bad("it is written `s`, `s up`, `s down`, `s left` or `s right`")


def _nothing(rest: str) -> None:
    if rest.strip():
        raise _bad(f"nothing is expected where {rest.strip()[:40]!r} stands")


def _bad(message: str) -> InvalidInputError:
    return InvalidInputError("BAD_COMMAND", f"{message}.", hint="? lists the commands.")
