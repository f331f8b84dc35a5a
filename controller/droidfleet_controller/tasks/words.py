"""Reads the words that users add to those which speak of an effect that cannot be undone."""

from __future__ import annotations

from pathlib import Path

from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.effects import MAX_WORDS_BYTES, EffectWords, effect_words


def load_words(path: Path | None) -> EffectWords:
    """The words of this package and those in a file, one word or phrase a line; None: no file.

    Raises:
        InvalidInputError: ``FILE_UNREADABLE``, also when it is too large or not UTF-8 text.
    """
    if path is None:
        return effect_words()
    try:
        with path.open("rb") as file:
            data = file.read(MAX_WORDS_BYTES + 1)
        if len(data) > MAX_WORDS_BYTES:
            raise _unreadable(path, f"it is larger than {MAX_WORDS_BYTES // 1024} KiB")
        return effect_words(tuple(data.decode("utf-8-sig").splitlines()))
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, "it is not UTF-8 text") from error


def _unreadable(path: Path, why: str) -> InvalidInputError:
    return InvalidInputError(
        "FILE_UNREADABLE",
        f"the words in {str(path)!r} cannot be read: {why}.",
        hint="Name a text file with one word or phrase a line; lines that begin with # are comments.",
    )
