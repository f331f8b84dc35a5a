"""Finds words on labels that speak of an effect which cannot be undone: sending, paying, deleting.

The words are data: a file for each language in `effect_words`, and what users add in files of the same form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

from droidfleet_shared.protocol.text import normalise

MAX_WORDS_BYTES = 1024 * 1024
"""Of a file with words: more is not a list that somebody wrote."""

_EXACT = "="
_COMMENT = "#"

_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Thai, Lao, Burmese, Khmer, kana, Han and Hangul: a word is found wherever it stands."""

_LETTERS = re.compile(r"[^\W\d_]+")
_CONSONANT = "[bcdfghjklmnpqrstvwxz]"
_DOUBLES = re.compile(f"(?:^|{_CONSONANT})[aeiou][bdgklmnprtz]$")
_SIBILANT = re.compile("(?:s|x|z|ch|sh)$")


class EffectWords:
    """A list of words and phrases, ready to be looked for."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Takes the lines of a list (`effect_words/en.txt` says how they are written)."""
        self._contained: list[str] = []
        self._phrases: dict[str, list[tuple[frozenset[str], ...]]] = {}
        for line in lines:
            entry = normalise(line.partition(_COMMENT)[0]).casefold()
            if _WITHOUT_SPACES.search(entry):
                self._contained.append(entry.removeprefix(_EXACT))
            elif words := _LETTERS.findall(entry):
                exact = entry.startswith(_EXACT)
                phrase = tuple(frozenset({word}) if exact else _forms(word) for word in words)
                for form in phrase[0]:
                    self._phrases.setdefault(form, []).append(phrase)

    def found_in(self, label: str) -> str | None:
        """The first word or phrase of the list in a label, as it stands there in lower case; None: there is none."""
        text = normalise(label)
        words = [part.casefold() for run in _LETTERS.findall(text) for part in _parts(run)]
        for place, word in enumerate(words):
            for phrase in self._phrases.get(word, ()):
                there = words[place : place + len(phrase)]
                if len(there) == len(phrase) and all(each in forms for each, forms in zip(there, phrase, strict=True)):
                    return " ".join(there)
        folded = text.casefold()
        return next((word for word in self._contained if word in folded), None)


@lru_cache(maxsize=8)
def effect_words(more: tuple[str, ...] = ()) -> EffectWords:
    """The words of all languages, and the lines ``more``."""
    folder = files("droidfleet_shared.protocol") / "effect_words"
    lines = [
        line
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return EffectWords([*lines, *more])


def _parts(run: str) -> list[str]:
    """The words of a name in camel case: ``btn``, ``URL`` and ``Send`` of ``btnURLSend``."""
    cuts = [
        place
        for place in range(1, len(run))
        if run[place].isupper() and (run[place - 1].islower() or run[place + 1 : place + 2].islower())
    ]
    return [run[start:end] for start, end in zip([0, *cuts], [*cuts, len(run)], strict=True)]


def _forms(word: str) -> frozenset[str]:
    """An English verb with its regular endings."""
    if word.endswith("e"):
        return frozenset({word, f"{word}s", f"{word}d", f"{word[:-1]}ing"})
    if re.search(f"{_CONSONANT}y$", word):
        return frozenset({word, f"{word[:-1]}ies", f"{word[:-1]}ied", f"{word}ing"})
    stem = word + word[-1] if _DOUBLES.search(word) else word
    third = f"{word}es" if _SIBILANT.search(word) else f"{word}s"
    return frozenset({word, third, *(f"{each}{ending}" for each in {word, stem} for ending in ("ed", "ing"))})
