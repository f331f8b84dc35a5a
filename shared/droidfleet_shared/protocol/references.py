"""``${...}`` in texts (protocol section 1).

`${inputs.NAME}` and `${outputs.FIELD}` come with inputs; until then every `${` is refused, so that no text changes its
meaning later. `$${` is a literal `${`, in every text of a document; reading from left to right, the longest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.wording import cut, quoted

_REFERENCE = re.compile(r"\$\$\{|\$\{[^}]*\}?")
_LITERAL = "$${"
_MAX_SHOWN = 40


def unknown_references(place: Place, text: str) -> Iterator[Finding]:
    """A finding for each reference in one text."""
    for found in _REFERENCE.finditer(text):
        if found[0] != _LITERAL:
            yield Finding(
                place,
                ValidationCode.UNKNOWN_REFERENCE,
                f"{quoted(cut(found[0], limit=_MAX_SHOWN))} is a reference, and references to inputs and outputs are "
                "proposed and not implemented yet",
                "Write the value itself. A literal `${` is written `$${`.",
            )


def literal(text: str) -> str:
    """The text that is meant: each `$${` as `${`."""
    return text.replace(_LITERAL, "${")


def literal_document(document: Json) -> Json:
    """The document with every text as it is meant."""
    if isinstance(document, str):
        return literal(document)
    if isinstance(document, list):
        return [literal_document(each) for each in document]
    if isinstance(document, dict):
        return {key: literal_document(each) for key, each in document.items()}
    return document
