"""Full-match regular expressions of bounded cost, for the `...Matches` fields (protocol section 5).

Python's `re` backtracks, so a short pattern such as `(a+)+b` can take years on a short text. Here a pattern becomes an
automaton that reads each character of the text once: at most `regex_syntax.MAX_SIZE` simple operations a character, and
`MAX_TEXT_LENGTH` characters. What it has seen is remembered, so that common patterns cost one look-up a character.
"""

from __future__ import annotations

from functools import lru_cache
from typing import assert_never

from droidfleet_shared.protocol.regex_syntax import BadPatternError, Char, Choice, Node, Repeat, Sequence, parse
from droidfleet_shared.protocol.text import without_marks

__all__ = ["MAX_TEXT_LENGTH", "BadPatternError", "Pattern", "compile_pattern"]

MAX_TEXT_LENGTH = 4_096
"""A longer text matches no pattern. Labels are shorter; with `MAX_SIZE` it bounds the cost of one match."""

_MAX_REMEMBERED = 5_000
"""Automaton states kept in what one pattern remembers (about 300 KB); the match that exceeds it is the last to add."""


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Pattern:
    """Reads a pattern; the same object for the same text, so that what it remembers is shared.

    Literal characters are compared as in `text.normalise`: marks without width are dropped, any white space is a space.

    Raises:
        BadPatternError: it is not a regular expression, or one that cannot be matched in bounded time.
    """
    return Pattern(parse(without_marks(pattern)))


class _State:
    """A set of automaton states that can be reached by one beginning of a text."""

    __slots__ = ("accepting", "following", "threads")

    def __init__(self, threads: frozenset[int], *, accepting: bool) -> None:
        self.threads = threads
        self.accepting = accepting
        self.following: dict[str, _State] = {}


class Pattern:
    """A compiled pattern. Safe to share between threads: what is remembered may at worst be worked out twice."""

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        self._program: _Program | None = None
        self._start: _State | None = None
        self._known: dict[frozenset[int], _State] = {}
        self._remembered = 0

    def fullmatch(self, text: str) -> bool:
        """Whether the whole of ``text`` (normalised, at most `MAX_TEXT_LENGTH` characters) matches."""
        if len(text) > MAX_TEXT_LENGTH:
            return False
        program = self._program = self._program or _Program(self._tree)
        if self._start is None or self._remembered > _MAX_REMEMBERED:
            self._known, self._remembered = {}, 0
            self._start = self._state(program, program.closure([0]))
        state = self._start
        for char in text:
            following = state.following.get(char)
            if following is None:
                following = self._state(program, program.step(state.threads, char))
                if self._remembered <= _MAX_REMEMBERED:
                    state.following[char] = following
                    self._remembered += 1
            if not following.threads:
                return False
            state = following
        return state.accepting

    def _state(self, program: _Program, threads: frozenset[int]) -> _State:
        state = self._known.get(threads)
        if state is None:
            state = _State(threads, accepting=program.end in threads)
            if self._remembered <= _MAX_REMEMBERED:
                self._known[threads] = state
                self._remembered += len(threads)
        return state


class _Program:
    """The automaton (Thompson's construction). A state reads one character (`tests`) or moves on freely (`moves`)."""

    def __init__(self, tree: Node) -> None:
        self.tests: list[Char | None] = []
        self.moves: list[list[int]] = []
        self._emit(tree)
        self.end = self._add(None)

    def closure(self, states: list[int]) -> frozenset[int]:
        """The reading states, and the end, that can be reached from ``states`` without reading."""
        seen: set[int] = set()
        reached: set[int] = set()
        todo = states
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            if self.tests[state] is not None or state == self.end:
                reached.add(state)
            else:
                todo.extend(self.moves[state])
        return frozenset(reached)

    def step(self, states: frozenset[int], char: str) -> frozenset[int]:
        """Where reading ``char`` leads."""
        return self.closure([state + 1 for state in states if _accepts(self.tests[state], char)])

    def _add(self, test: Char | None, *moves: int) -> int:
        self.tests.append(test)
        self.moves.append(list(moves))
        return len(self.tests) - 1

    def _emit(self, node: Node) -> None:
        match node:
            case Char():
                self._add(node)  # reading it leads to the state after it
            case Sequence():
                for part in node.parts:
                    self._emit(part)
            case Choice():
                fork = self._add(None)
                ends = []
                for option in node.options:
                    self.moves[fork].append(len(self.tests))
                    self._emit(option)
                    ends.append(self._add(None))
                for end in ends:
                    self.moves[end].append(len(self.tests))
            case Repeat():
                self._emit_repeat(node)
            case _:
                assert_never(node)

    def _emit_repeat(self, node: Repeat) -> None:
        for _ in range(node.low):
            self._emit(node.part)
        if node.high is None:
            fork = self._add(None, len(self.tests) + 1)
            self._emit(node.part)
            self._add(None, fork)
            self.moves[fork].append(len(self.tests))
            return
        forks = []
        for _ in range(node.high - node.low):
            forks.append(self._add(None, len(self.tests) + 1))
            self._emit(node.part)
        for fork in forks:
            self.moves[fork].append(len(self.tests))


def _accepts(char: Char | None, text: str) -> bool:
    if char is None:
        return False
    test = char.test
    return test == text if isinstance(test, str) else test.match(text) is not None
