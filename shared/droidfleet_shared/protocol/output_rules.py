"""The rule of outputs, over the raw tree: each is a text in every step that writes it, or a list in every one.

Whoever reads an output (a text, a condition, the caller of the task) has to know which of the two it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.flow_rules import RawStep
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.pointers import Json, Place, pointer
from droidfleet_shared.protocol.wording import name


def outputs_of(place: Place, step: dict[str, Json]) -> Iterator[tuple[Place, str]]:
    """The outputs that a raw step writes, and where each is named."""
    fields = step.get("fields")
    inner = enumerate(fields) if isinstance(fields, list) else ()
    holders = [(place, step), *(((*place, "fields", at), field) for at, field in inner if isinstance(field, dict))]
    for where, holder in holders:
        output = holder.get("outputField")
        if isinstance(output, str):
            yield (*where, "outputField"), output


def output_findings(steps: list[RawStep]) -> Iterator[Finding]:
    """Outputs that are a list here and a text there."""
    first: dict[str, tuple[bool, Place]] = {}
    for place, step in steps:
        is_list = step.get("append") is True or step.get("all") is True
        for here, output in outputs_of(place, step):
            was_list, where = first.setdefault(output, (is_list, place))
            if was_list != is_list:
                kinds = ("a list", "a text") if is_list else ("a text", "a list")
                message = f"{name(output)} is {kinds[0]} here, and {kinds[1]} in the step at {pointer(where)}"
                hint = "Write both with `append` (or `all`), or neither; or give one of them another name."
                yield Finding(here, ValidationCode.CONFLICTING_FIELDS, message, hint)
