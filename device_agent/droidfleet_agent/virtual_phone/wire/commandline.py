"""Reads a shell command line as far as automation clients write them. Pure.

Understood: words with single and double quotes and backslashes, `;`, `&&`, `||`, `|`, `&`, line breaks, ``$?``,
``NAME=value`` before a command, and redirections (only the path of `> PATH` is kept; the others change nothing here).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

MAX_COMMAND_BYTES = 64 * 1024
"""Longer command lines are refused. An input of text as base64 is the longest that a client sends."""

LAST_STATUS = "\0?"
"""Stands for ``$?`` in a word. NUL cannot come from a command line."""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r]+) |
    (?P<redirect>\d?(?:>>|>&|<&|>|<)) |
    (?P<operator>&&|\|\||[;&|\n]) |
    (?P<single>'[^']*') |
    (?P<double>"(?:\\.|[^"\\])*") |
    (?P<escape>\\.) |
    (?P<plain>[^\s;&|'"\\<>]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_DOUBLE_ESCAPE = re.compile(r'\\(["\\$`])')
_STATUS = re.compile(r"\$\?")


class Joint(StrEnum):
    """What stands between a command and the one before it."""

    ALWAYS = ";"
    AND = "&&"
    OR = "||"
    PIPE = "|"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One simple command. ``words[0]`` is its name. ``write_to`` is the path of a ``> PATH``, empty without one."""

    joint: Joint
    words: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    background: bool = False
    write_to: str = ""


class CommandLineError(Exception):
    """The line cannot be read; the text is what `sh` would print."""


def parse(line: str) -> list[Invocation]:
    """The commands of a line in order. Raises `CommandLineError`."""
    if len(line) > MAX_COMMAND_BYTES:
        raise CommandLineError("sh: Argument list too long")
    return _Parser(line).run()


def with_status(word: str, status: int) -> str:
    """The word with ``$?`` filled in."""
    return word.replace(LAST_STATUS, str(status)) if LAST_STATUS in word else word


class _Parser:
    def __init__(self, line: str) -> None:
        self._line = line
        self._found: list[Invocation] = []
        self._joint = Joint.ALWAYS
        self._words: list[str] = []
        self._word: str | None = None
        self._redirect = ""
        self._write_to = ""
        self._quoted = False

    def run(self) -> list[Invocation]:
        position = 0
        while position < len(self._line):
            match = _TOKEN.match(self._line, position)
            if match is None:
                raise CommandLineError("sh: syntax error: no closing quote")
            position = match.end()
            self._take(str(match.lastgroup), match.group())
        self._end_command(Joint.ALWAYS, background=False)
        return self._found

    def _take(self, kind: str, text: str) -> None:
        match kind:
            case "plain":
                self._append(_STATUS.sub(LAST_STATUS, text))
            case "single":
                self._quoted = True
                self._append(text[1:-1])
            case "double":
                self._quoted = True
                self._append(_DOUBLE_ESCAPE.sub(r"\1", _STATUS.sub(LAST_STATUS, text[1:-1])))
            case "escape":
                self._quoted = True
                self._append(text[1:])
            case "space":
                self._end_word()
            case "redirect":
                self._end_word()
                self._redirect = text
            case _:
                self._end_word()
                background = text == "&"
                joint = Joint.ALWAYS if text in {"\n", "&", ";"} else Joint(text)
                self._end_command(joint, background=background)

    def _append(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _end_word(self) -> None:
        word, self._word, quoted, self._quoted = self._word, None, self._quoted, False
        if word is None:
            return
        if self._redirect:
            redirect, self._redirect = self._redirect, ""
            if redirect in {">", "1>", ">>", "1>>"} and word != "/dev/null":
                self._write_to = word
            return
        # A digit before a redirection belongs to it and was taken with it; everything else is a word.
        if word or quoted:
            self._words.append(word)

    def _end_command(self, joint: Joint, *, background: bool) -> None:
        self._end_word()
        environment: dict[str, str] = {}
        words = self._words
        while words and _ASSIGNMENT.match(words[0]):
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        if words:
            self._found.append(Invocation(self._joint, tuple(words), environment, background, self._write_to))
        self._words, self._write_to, self._redirect = [], "", ""
        self._joint = joint
