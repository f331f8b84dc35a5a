"""Finds what a person named on a screen, and never guesses: two that fit are none. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from droidfleet_designer.practice.reading import Line, Shown, Word, same, texts_in
from droidfleet_designer.practice.wishes import Name
from droidfleet_shared.protocol.text import normalise

MAX_SIMILAR = 5
"""Things that are told of as perhaps meant."""

_SEARCHING = ("search", "find", "搜索", "查找", "搜一搜", "检索")
_CLOSING = (
    *(
        "close",
        "dismiss",
        "skip",
        "not now",
        "no thanks",
        "no, thanks",
        "maybe later",
        "later",
        "got it",
        "remind me later",
    ),
    *("关闭", "跳过", "暂不", "以后再说", "稍后", "稍后再说", "下次再说", "知道了", "我知道了", "不用了", "不, 谢谢"),
)
"""What closes something that came up by itself, and agrees to nothing."""


@dataclass(frozen=True, slots=True)
class Found:
    """The one line that is meant."""

    line: Line


@dataclass(frozen=True, slots=True)
class Several:
    """More than one line may be meant."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Nothing:
    """No line is meant; ``similar``: words on the screen that contain what was said, for the person to choose from."""

    similar: tuple[str, ...]


Finding = Found | Several | Nothing


def thing(name: Name, screen: Shown) -> Finding:
    """What can be used and is called so, whole; else what only says so, for a tap may do something on it, too."""
    called = [line for line in screen.lines if _called(line, name)]
    usable = [line for line in called if line.usable and line.kind != "field"]
    return _only(
        usable or called or [line for line in screen.lines if _has_id(line, name) and line.usable], name, screen
    )


def field(name: Name | None, screen: Shown) -> Finding:
    """The field that is called so; without a name: the only one."""
    fields = [line for line in screen.lines if line.kind == "field"]
    if name is None:
        return _only(fields, None, screen)
    named = ([line for line in fields if by(line, name)] for by in (_called, _has_id, _named_by))
    return _only(next((lines for lines in named if lines), []), name, screen)


def switch(name: Name, screen: Shown) -> Finding:
    """The switch or box that is called so."""
    turning = [line for line in screen.lines if line.states & {"checked", "unchecked"}]
    return _only([line for line in turning if _called(line, name)], name, screen)


def search_field(screen: Shown) -> Finding:
    """The field for searching: the one that says so, else the only one."""
    fields = [line for line in screen.lines if line.kind == "field"]
    return _only([line for line in fields if _mentions(line, _SEARCHING)] or fields, None, screen)


def search_button(screen: Shown) -> Finding:
    """What brings up the field for searching."""
    usable = (line for line in screen.lines if line.usable and not line.danger)
    return _only([line for line in usable if _says_one_of(line, _SEARCHING)], None, screen)


def closing(screen: Shown) -> Line | None:
    """What closes something that lies in the way; None: there is no such thing, or more than one."""
    usable = (line for line in screen.lines if line.usable and not line.danger and line.selector is not None)
    lines = [line for line in usable if _says_one_of(line, _CLOSING)]
    return lines[0] if len(lines) == 1 else None


def word(name: Name, screen: Shown) -> tuple[Line, Word] | None:
    """Where a text is shown, whole if it is anywhere, else as a part of another; fields hold what somebody typed."""
    for fits in (is_called, _contains):
        for line in screen.lines:
            for each in line.words:
                if line.kind != "field" and fits(each, name):
                    return line, each
    return None


def readable(name: Name, screen: Shown) -> Finding:
    """What is to be read: by the name that its maker gave it, or where it begins with what it is called."""
    by_id = [line for line in screen.lines if _has_id(line, name)]
    if by_id:
        return _only(by_id, name, screen)
    beginning = [line for line in screen.lines if any(_begins(each, name) for each in line.words)]
    return _only(beginning, name, screen)


def id_of(line: Line, name: Name) -> str:
    """The id of the line, or of a part of it, that is called so; empty: none."""
    return next((each for each in line.ids if any(same(_spoken(each), said) for said in name.spellings)), "")


def similar(name: Name, screen: Shown) -> tuple[str, ...]:
    """Words on the screen that contain what was said."""
    words = (each.text for line in screen.lines for each in line.words if _contains(each, name))
    return tuple(dict.fromkeys(words))[:MAX_SIMILAR]


def _only(lines: Sequence[Line], name: Name | None, screen: Shown) -> Finding:
    named = [line for line in lines if line.selector is not None]
    if len(lines) == 1 and named:
        return Found(named[0])
    return Several(tuple(lines)) if lines else Nothing(similar(name, screen) if name is not None else ())


def _called(line: Line, name: Name) -> bool:
    return any(is_called(each, name) for each in line.words)


def is_called(each: Word, name: Name) -> bool:
    """Whether a text is what a person called a thing, whole."""
    return not each.cut and any(same(each.text, said) for said in name.spellings)


def _contains(each: Word, name: Name) -> bool:
    return any(normalise(said).casefold() in normalise(each.text).casefold() for said in name.spellings)


def _begins(each: Word, name: Name) -> bool:
    text = normalise(each.text).casefold()
    spelt = (normalise(said).casefold() for said in name.spellings)
    return any(text.startswith(said) and len(text) > len(said) and not text[len(said)].isalnum() for said in spelt)


def _has_id(line: Line, name: Name) -> bool:
    return bool(id_of(line, name))


def _named_by(line: Line, name: Name) -> bool:
    """Whether it is told by its label alone, as a field that hides what it holds may be."""
    return any(same(text, said) for text in texts_in(line.selector or {}) for said in name.spellings)


def _spoken(identity: str) -> str:
    return identity.replace("_", " ").replace("-", " ")


def _mentions(line: Line, words: Iterable[str]) -> bool:
    said = [*(each.text for each in line.words), *line.ids]
    return any(word in normalise(text).casefold() for text in said for word in words)


def _says_one_of(line: Line, words: Sequence[str]) -> bool:
    return any(normalise(each.text).casefold() in words for each in line.words if not each.cut)


Finder = Callable[[Shown], Finding]
