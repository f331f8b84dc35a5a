"""Where a task comes from on the command line: a file, standard input, or the library. Reads; never judges."""

from __future__ import annotations

import sys
from pathlib import Path

from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES

STDIN = "-"


def names_file(source: str) -> bool:
    """Whether the argument means a file: ``-``, something that exists, or something spelt like a path to JSON.

    A task id that is also the name of a file means the file; ``./`` makes the intent plain.
    """
    return source == STDIN or source.endswith(".json") or "/" in source or Path(source).is_file()


def read_bytes(source: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``; one more than the limit at most, which is enough to refuse.

    Raises:
        InvalidInputError: ``FILE_UNREADABLE``: there is none, a folder, or not permitted.
    """
    limit = MAX_DOCUMENT_BYTES + 1
    if source == STDIN:
        return sys.stdin.buffer.read(limit)
    try:
        with Path(source).open("rb") as file:
            return file.read(limit)
    except OSError as error:
        raise InvalidInputError(
            "FILE_UNREADABLE",
            f"the task file {source!r} cannot be read: {error.strerror}.",
            hint="Name an existing file, or - for standard input. A task of the library is named by its id alone.",
        ) from error


def read_text(source: str) -> str:
    """The text of a document, for sending.

    Raises:
        InvalidInputError: also ``TOO_LARGE`` and ``BAD_JSON`` for what no message can carry; everything else about
            the document is the controller's to say.
    """
    data = read_bytes(source)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise InvalidInputError(
            "TOO_LARGE",
            f"the document is larger than {MAX_DOCUMENT_BYTES // 1024} KiB.",
            hint="Split the task into several.",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            "BAD_JSON", f"the document is not UTF-8 text: byte {error.start} cannot be read.", hint="Save it as UTF-8."
        ) from error
