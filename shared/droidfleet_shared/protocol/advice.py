"""What is worth a look before a task runs, and stops nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from droidfleet_shared.protocol.codes import WarningCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.wording import name, shown

_IRREVERSIBLE = frozenset(
    {"buy", "delete", "erase", "order", "pay", "post", "publish", "purchase", "remove", "send", "transfer", "uninstall"}
)
"""Words on buttons whose effect cannot be taken back. English only: a reminder, not a safeguard."""

_LABEL_FIELDS = ("text", "textContains", "textStartsWith", "description", "descriptionContains", "resourceId")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def irreversible_effect(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    """A warning for a step that seems to send, pay, delete or the like."""
    selector = step.get("selector")
    if step.get("action") != "CLICK" or not isinstance(selector, dict):
        return
    for field in _LABEL_FIELDS:
        label = selector.get(field)
        if not isinstance(label, str):
            continue
        word = next((word for word in _WORD.findall(label) if word.lower() in _IRREVERSIBLE), None)
        if word is not None:
            yield Finding(
                (*place, "selector", field),
                WarningCode.IRREVERSIBLE_EFFECT,
                f"the step taps {shown(label)}; {name(word.lower())} suggests an effect that cannot be undone",
                "Make sure that the selector can mean nothing else, and try the task on a phone where it does no harm.",
            )
            return
