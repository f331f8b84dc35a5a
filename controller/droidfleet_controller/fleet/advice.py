"""Why a query matches nothing, and which of its keys nobody has: sentences for people. Pure."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Sequence

from droidfleet_controller.fleet.facts import BUILT_IN
from droidfleet_controller.fleet.query import Condition, Equals, Facts, OneOf, Query
from droidfleet_shared.protocol.suggestions import nearest

MAX_VALUES = 5
"""Values that are named for a key, the most frequent first."""

MAX_SENTENCES = 5

COMPARED = 100
"""Values on either side of a misspelt one that are compared with it."""


def unknown_keys(query: Query, known: Iterable[str]) -> list[str]:
    """A sentence for each key that no phone has; ``known``: labels and capabilities that some phone has."""
    words = sorted({*known, *BUILT_IN})
    sentences = []
    for key in dict.fromkeys(condition.key for condition in query.conditions):
        if key not in words:
            near = nearest(key, words)
            meant = f" Did you mean {near}?" if near else ""
            sentences.append(f"No phone has {key}.{meant}")
    return sentences[:MAX_SENTENCES]


def why_nothing(query: Query, fleet: Sequence[Facts]) -> list[str]:
    """Why no phone of the fleet matches: the conditions that none meets, or that there is none that meets all."""
    if not fleet:
        return ["There are no phones yet."]
    met = {condition: sum(map(condition.holds, fleet)) for condition in query.conditions}
    alone = [_why(condition, fleet) for condition, count in met.items() if not count]
    if alone:
        return alone[:MAX_SENTENCES]
    counts = ", ".join(f"{condition} ({count})" for condition, count in list(met.items())[:MAX_SENTENCES])
    return [f"Some phones meet each condition, and none meets all: {counts}."]


def _why(condition: Condition, fleet: Sequence[Facts]) -> str:
    values = Counter(facts[condition.key] for facts in fleet if condition.key in facts)
    if not values:
        return f"No phone has {condition.key}."
    if len(values) > MAX_VALUES and sum(values.values()) == len(values):
        found = f"for example {', '.join(sorted(values)[:MAX_VALUES])}"
    else:
        found = ", ".join(f"{value or 'empty'} ({count})" for value, count in values.most_common(MAX_VALUES))
    asked = _asked(condition)
    ordered = sorted(values)
    near = [value for each in asked if (value := nearest(each, _around(each, ordered)))]
    meant = f" Did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
    return f"No phone meets {condition}; {condition.key} is {found}.{meant}"


def _around(word: str, ordered: Sequence[str]) -> Sequence[str]:
    """The words beside it in the order of the alphabet: comparing with a whole fleet's takes too long."""
    place = bisect(ordered, word)
    return ordered[max(0, place - COMPARED) : place + COMPARED]


def _asked(condition: Condition) -> tuple[str, ...]:
    """The texts that it wants."""
    if isinstance(condition, OneOf):
        return condition.values
    return (condition.value,) if isinstance(condition, Equals) and not condition.negated else ()
