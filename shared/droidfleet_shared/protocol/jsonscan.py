"""The slow JSON reader: knows where everything stands, and says what is wrong so that it can be mended.

`jsontext` calls it only for documents that the fast reader does not like. It keeps its own stack, so that nesting
cannot exhaust Python's, and takes time linear in the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import MAX_ISSUES, Finding
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.wording import name, quoted

MAX_NESTING = 100
"""Levels of objects and lists within each other."""

MAX_NUMBER_LENGTH = 400
"""Characters of a number; every double fits, and reading a longer one takes time that grows with its square."""

_EXCERPT = 30
"""Characters shown before and after the place of an error."""

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING_BODY = re.compile(r'[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})[^"\\\x00-\x1f]*)*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9A-Za-z_.+-])")
_WORD = re.compile(r"-?[A-Za-z_][A-Za-z0-9_]*")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NOT_NUMBERS = {"NaN", "-NaN", "Infinity", "-Infinity"}
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null", "undefined": "null", "nil": "null"}


class BrokenJsonError(Exception):
    """The text is no JSON from some place on. ``findings`` are all, the one that ends it last."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__(findings[-1].message)
        self.findings = findings


def scan(text: str) -> tuple[Json, list[Finding]]:
    """Reads a text to a tree, and what is wrong with it.

    In the tree, what was complained about is replaced by something harmless: a repeated key by its last value, a lone
    surrogate by U+FFFD, a number that cannot be by 0.

    Raises:
        BrokenJsonError: there is no tree.
    """
    scanner = _Scanner(text)
    return scanner.document(), scanner.findings


@dataclass(slots=True)
class _Open:
    """An object or list that is being read."""

    value: dict[str, Json] | list[Json]
    key: str = ""
    seen_at: dict[str, int] = field(default_factory=dict)

    @property
    def closer(self) -> str:
        return "}" if isinstance(self.value, dict) else "]"

    @property
    def token(self) -> str | int:
        return self.key if isinstance(self.value, dict) else len(self.value)

    def add(self, value: Json) -> None:
        if isinstance(self.value, dict):
            self.value[self.key] = value
        else:
            self.value.append(value)


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[_Open] = []
        self._whole: Json = None
        self.findings: list[Finding] = []

    def document(self) -> Json:
        self._skip_space()
        if self._at == len(self._text):
            raise self._fatal("the document is empty", 'A task is one JSON object: `{"schemaVersion": 1, ...}`.')
        while True:
            opener = self._peek()
            if opener in {"{", "["}:
                opened = self._enter(opener)
                if self._peek() != opened.closer:
                    if opener == "{":
                        self._key(opened)
                    continue
                self._at += 1
                value: Json = self._open.pop().value
            else:
                value = self._scalar()
            if self._settle(value):
                return self._whole

    def _enter(self, opener: str) -> _Open:
        if len(self._open) >= MAX_NESTING:
            raise self._fatal(f"objects and lists are nested more than {MAX_NESTING} levels deep", "Nest less deeply.")
        self._at += 1
        self._skip_space()
        opened = _Open({} if opener == "{" else [])
        self._open.append(opened)
        return opened

    def _settle(self, value: Json) -> bool:
        """Puts a read value where it belongs, closing what ends here. True when it was the document."""
        while self._open:
            top = self._open[-1]
            top.add(value)
            self._skip_space()
            if self._take(","):
                self._skip_space()
                if top.closer == "}":
                    self._key(top)
                elif self._peek() == "]":
                    raise self._unexpected("another value", "Remove the comma after the last value.")
                return False
            if not self._take(top.closer):
                where = f"after the value of {name(top.key)}" if top.closer == "}" else "after the value"
                raise self._unexpected(f"`,` or `{top.closer}` {where}")
            value = self._open.pop().value
        self._skip_space()
        if self._at < len(self._text):
            raise self._unexpected("the end", "A document is one JSON value; remove what follows it.")
        self._whole = value
        return True

    def _key(self, opened: _Open) -> None:
        if self._peek() != '"':
            hint = "Keys stand in double quotes."
            if self._peek() == "}":
                hint = "Remove the comma after the last value."
            raise self._unexpected("a key in double quotes", hint)
        start = self._at
        written = self._string()
        opened.key = _LONE_SURROGATE.sub("\ufffd", written)  # first, so that the complaint is about this key
        key = self._without_halves(written)
        if key in opened.seen_at and not self._full:
            lines = f"line {self._line(opened.seen_at[key])} and line {self._line(start)}"
            self._complain(
                ValidationCode.BAD_JSON,
                f"the key {name(key)} stands twice in one object ({lines})",
                "Keep one of the two; readers of JSON differ in which one they believe.",
            )
        else:
            opened.seen_at[key] = start
        self._skip_space()
        if not self._take(":"):
            raise self._unexpected(f"`:` after the key {name(key)}")
        self._skip_space()

    def _scalar(self) -> Json:
        if self._peek() == '"':
            return self._without_halves(self._string())
        if number := _NUMBER.match(self._text, self._at):
            return self._number(number)
        word = _WORD.match(self._text, self._at)
        if word and word[0] in _CONSTANTS:
            self._at = word.end()
            return _CONSTANTS[word[0]]
        if word and word[0] in _NOT_NUMBERS:
            self._at = word.end()
            self._complain(ValidationCode.BAD_JSON, f"{name(word[0])} is not JSON", "Write a number, or leave it out.")
            return 0
        if word and word[0] in _PYTHON_WORDS:
            raise self._unexpected("a value", f"Write {name(_PYTHON_WORDS[word[0]])} instead of {name(word[0])}.")
        if self._peek() in {"]", "}", ","}:
            raise self._unexpected("a value")
        if self._peek() and self._peek() in "+-.0123456789":
            raise self._unexpected("a value", "A number looks like `12`, `-3` or `0.5`: no `+`, no leading zero.")
        raise self._unexpected("a value", "Texts stand in double quotes." if word else "")

    def _number(self, found: re.Match[str]) -> int | float:
        self._at = found.end()
        digits = found[0]
        if len(digits) > MAX_NUMBER_LENGTH:
            message = f"a number of {len(digits):,} characters; at most {MAX_NUMBER_LENGTH} are read"
            self._complain(ValidationCode.OUT_OF_RANGE, message)
            return 0
        if found[1] is None and found[2] is None:
            return int(digits)
        value = float(digits)
        if value in {float("inf"), float("-inf")}:
            self._complain(ValidationCode.OUT_OF_RANGE, f"the number {name(digits)} is too large")
            return 0
        return value

    def _string(self) -> str:
        start = self._at
        body = _STRING_BODY.match(self._text, start + 1)
        assert body is not None  # it may match nothing
        self._at = body.end()
        if self._peek() == '"':
            self._at += 1
            value: str = json.loads(self._text[start : self._at])
            return value
        if self._at == len(self._text):
            self._at = start
            raise self._fatal(
                "the text that begins here is not closed", 'A `"` is missing, or the document was cut off.'
            )
        if self._peek() == "\\":
            raise self._unexpected("an escape such as `\\n`, `\\\\` or `\\u00e9`", "A backslash is written `\\\\`.")
        raise self._fatal(
            f"a text holds the control character {name(self._peek())}", "Write a line break as `\\n`, a tab as `\\t`."
        )

    def _without_halves(self, text: str) -> str:
        cleaned = _LONE_SURROGATE.sub("\ufffd", text)
        if cleaned != text:
            self._complain(
                ValidationCode.BAD_JSON,
                "a text holds half of a character (a lone surrogate such as `\\ud83d`)",
                "Write the character itself, or both halves: `\\ud83d\\ude00`.",
            )
        return cleaned

    # The text ----------------------------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, char: str) -> bool:
        taken = self._peek() == char
        self._at += taken
        return taken

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None  # it may match nothing
        self._at = found.end()

    def _line(self, at: int) -> int:
        return self._text.count("\n", 0, at) + 1

    # Findings ----------------------------------------------------------------------------------------------------

    @property
    def _full(self) -> bool:
        return len(self.findings) >= MAX_ISSUES + 1

    def _complain(self, code: ValidationCode, message: str, hint: str = "") -> None:
        if not self._full:
            place = tuple(opened.token for opened in self._open)
            self.findings.append(Finding(place, code, message, hint))

    def _unexpected(self, expected: str, hint: str = "") -> BrokenJsonError:
        if self._at == len(self._text):
            closers = "".join(opened.closer for opened in reversed(self._open))
            return self._fatal(
                f"the document ends where {expected} was expected",
                f"It was cut off, or {quoted(closers)} is missing at the end." if closers else "",
            )
        return self._fatal(f"expected {expected}, found {self._found()}", self._usual_mistake() or hint)

    def _fatal(self, message: str, hint: str) -> BrokenJsonError:
        column = self._at - self._text.rfind("\n", 0, self._at)
        where = f"line {self._line(self._at)}, column {column}"
        excerpt = f"; near {self._excerpt()}" if self._text.strip() else ""
        finding = Finding((), ValidationCode.BAD_JSON, f"{where}: {message}{excerpt}", hint)
        return BrokenJsonError([*self.findings, finding])

    def _found(self) -> str:
        word = _WORD.match(self._text, self._at)
        return name(word[0] if word else self._peek())

    def _excerpt(self) -> str:
        before = self._text[max(0, self._at - _EXCERPT) : self._at].rpartition("\n")[2]
        after = self._text[self._at : self._at + _EXCERPT].partition("\n")[0]
        return quoted(f"{before}»{after}")

    def _usual_mistake(self) -> str:
        """What people and programs often write that is not JSON."""
        ahead = self._text[self._at : self._at + 2]
        if ahead[0] in "'\u2018\u2019\u201c\u201d":
            return 'JSON knows straight double quotes only: `"`.'
        if ahead in {"//", "/*"} or ahead[0] == "#":
            return "JSON has no comments; remove it."
        if ahead[0] == "`":
            return "Send the JSON alone, without a Markdown fence around it."
        if not ahead[0].isascii() and ahead[0].isspace():
            return f"The character U+{ord(ahead[0]):04X} looks like a space and is none; remove it."
        return ""
