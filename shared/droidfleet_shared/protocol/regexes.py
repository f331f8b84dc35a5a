"""Full-match regular expressions for the `...Matches` fields (protocol section 5), by Google's RE2.

The one module that imports `re2`, which takes time linear in the text and bounded memory, whatever the pattern. Owned
here is what RE2 cannot know: how a phone's dump writes emoji, how texts are normalised, how a refusal is explained.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from droidfleet_shared.protocol.text import without_marks
from droidfleet_shared.protocol.wording import name

MAX_TEXT_LENGTH = 4_096
"""A longer text matches no pattern. Labels are shorter; the costliest patterns take about 0.1 ms a character."""

MAX_PATTERN_BYTES = 1_048_576
"""Memory of one compiled pattern, what it remembers of texts included. RE2's default of 8 MiB lets a pattern of 20
characters take 0.2 s to compile; this admits one such as `\\pL{1,50}`."""

MAX_REMEMBERED = 64
"""Compiled patterns kept. A task has few; with `MAX_PATTERN_BYTES` it bounds the memory of all."""

_SPACE = re.compile(r"\s")
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")
_ATOM = re.compile(
    r"(?P<quote>\\Q.*?(?:\\E|$)) | (?P<count>\{,\d*\}) | (?P<char>\\.) | "
    r"(?P<class>\[(?P<negated>\^?)\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]) | .",
    re.DOTALL | re.VERBOSE,
)
_OPTIONS = {"log_errors": False, "never_capture": True, "max_mem": MAX_PATTERN_BYTES}

_MENDED_BY = {
    "missing )": "a group is not closed; a literal parenthesis is written `\\(`",
    "unexpected )": "a `)` closes no group; a literal one is written `\\)`",
    "missing ]": "a class is not closed; a literal bracket is written `\\[`",
    "no argument for repetition operator": "{} has nothing before it to repeat; a backslash makes a sign literal",
    "bad repetition operator": "{} repeats a repeat; write it as `(?:a+)*`; possessive repeats are not supported",
    "invalid repetition size": (
        "{} is refused: a count goes from the smaller number to the larger and to 1000 at most, repeats within repeats "
        "multiplied"
    ),
    "invalid character class range": "{} is no class of characters; a range goes upwards, as in `[a-z]`",
    "invalid named capture group": "{} is no name of a group; it is written `(?P<name>...)`",
    "trailing \\": "a backslash needs a character after it; a literal one is written `\\\\`",
    "pattern too large - compile failed": "the pattern is too large with its repeats written out; count less",
}
"""RE2's complaints, and clauses that say how to write it; `{}` is the part that RE2 names."""

_WHOLE = "the pattern always has to match the whole text"
_NO_REFERENCE = "back-references are not supported; repeat what is meant, as in `(?:aa|bb)`"
_USE_SIGN = "write the character itself, or its code in hexadecimal as `\\x{20ac}`"
_NOT_IN_RE2 = {
    "(?=": f"look-ahead is not supported; write what follows as well, for {_WHOLE}",
    "(?!": "look-ahead is not supported; write what is wanted, or tell the nodes apart by another field",
    "(?<=": f"look-behind is not supported; write what comes before as well, for {_WHOLE}",
    "(?<!": "look-behind is not supported; write what is wanted, or tell the nodes apart by another field",
    "(?>": "atomic groups are not supported; write `(?:...)`, the time is bounded anyway",
    "(?P": "of `(?P` only `(?P<name>...)` is supported; back-references are not",
    "(?(": "conditional groups are not supported; write both cases: `(?:a|b)`",
    "(?#": "comments are not supported; leave it out",
    "(?": "{} is no group; groups are `(...)`, `(?:...)` and `(?P<name>...)`, flags are `i` and `s`: `(?i)`",
    "\\Z": f"`\\Z` is not supported and not needed; {_WHOLE}",
    "\\G": f"`\\G` is not supported and not needed; {_WHOLE}",
    "\\k": _NO_REFERENCE,
    "\\g": _NO_REFERENCE,
    "\\u": f"`\\u` is not supported; {_USE_SIGN}",
    "\\U": f"`\\U` is not supported; {_USE_SIGN}",
    "\\N": f"`\\N` is not supported; {_USE_SIGN}",
    "\\x": "{} is no character; its code is written as `\\xe9` or `\\x{20ac}`",
    **dict.fromkeys((f"\\{digit}" for digit in range(1, 10)), _NO_REFERENCE),
    "\\": "{} means nothing here; a literal backslash is written `\\\\`",
}
"""By the beginning of what RE2 does not know; the first that fits."""


class BadPatternError(ValueError):
    """The pattern is not accepted. ``reason`` is a clause for a message; it quotes the part that is meant."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Pattern:
    """A compiled pattern. Safe to share between threads."""

    def __init__(self, fullmatch: Callable[[bytes], object]) -> None:
        self._fullmatch = fullmatch

    def fullmatch(self, text: str) -> bool:
        """Whether the whole of ``text`` (normalised, at most `MAX_TEXT_LENGTH` characters) matches."""
        return len(text) <= MAX_TEXT_LENGTH and self._fullmatch(_encoded(text)) is not None


@lru_cache(maxsize=MAX_REMEMBERED)
def compile_pattern(pattern: str) -> Pattern:
    """Reads a pattern; the same object for the same text, so that what it remembers is shared.

    Literal characters are compared as in `text.normalise`: marks without width are dropped, any white space is a space.
    An emoji, and a class with one, also matches the two dots that a phone's dump shows instead.

    Raises:
        BadPatternError: RE2 does not accept it.
    """
    # Costs 3 MB and 5 ms at import: only tasks that use patterns pay for it.
    import re2  # noqa: PLC0415

    options = re2.Options()
    for option, value in _OPTIONS.items():
        setattr(options, option, value)
    written = _ATOM.sub(_for_dump, _SPACE.sub(" ", without_marks(pattern)))
    try:
        compiled = re2.compile(_encoded(written), options)
    except re2.error as error:
        raise BadPatternError(_reason(error.args[0].decode("utf-8", "replace"))) from None
    re2.purge()  # it keeps 128 patterns of its own, on top of ours
    return Pattern(compiled.fullmatch)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # half a character stands in no document and in no dump


def _for_dump(atom: re.Match[str]) -> str:
    whole = atom[0]
    if atom["count"]:
        raise BadPatternError(f"{name(whole)} would be literal text; write {name('{0' + whole[1:])}")
    if atom["quote"] or atom["negated"] or not _BEYOND_BMP.search(whole):
        return whole
    return rf"(?:{whole if atom['class'] else whole[-1]}|\.\.)"


def _reason(complaint: str) -> str:
    kind, _, part = complaint.partition(": ")
    if kind in {"invalid perl operator", "invalid escape sequence"}:
        clause = next((known for begin, known in _NOT_IN_RE2.items() if part.startswith(begin)), complaint)
    else:
        clause = _MENDED_BY.get(kind, complaint)
    return clause.replace("{}", name(part))
