"""Generated documents: valid ones, mutated ones, and trees that only look like tasks."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS
from droidfleet_shared.protocol.task import Task
from support.random_tasks import VALID_TASKS

Document = dict[str, Any]  # JSON


# Texts without `$` (its meaning is not structure) and never only white space.
LABELS = st.text(st.characters(exclude_characters="$"), max_size=20).map(lambda text: f"x{text}")


PACKAGES = st.sampled_from(["android", "com.shop", "com.android.settings", "org.a_b.C9"])
PATTERNS = st.sampled_from(["a+", r"Order #\d+", "(?i)ok|cancel", ".*"])


def _selectors(inner: st.SearchStrategy[Document]) -> st.SearchStrategy[Document]:
    texts = ("text", "textContains", "textStartsWith", "description", "resourceId", "className", "hint")
    flags = ("enabled", "checked", "selected", "focused", "clickable", "scrollable", "password")
    optional: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(texts, LABELS),
        **dict.fromkeys(("textMatches", "descriptionMatches"), PATTERNS),
        **dict.fromkeys(flags, st.booleans()),
        **dict.fromkeys(("within", "has", "leftOf", "above"), inner),
        "packageName": PACKAGES,
        "index": st.integers(0, 9999),
    }
    return _some(optional, at_least=st.sampled_from(texts), most=4)


def _some(
    optional: dict[str, st.SearchStrategy[Any]], *, at_least: st.SearchStrategy[str], most: int
) -> st.SearchStrategy[Document]:
    chosen = st.tuples(at_least, st.sets(st.sampled_from(sorted(optional)), max_size=most - 1))
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries({name: optional[name] for name in sorted({names[0]} | names[1])})
    )


SELECTORS = st.just({"xpath": "//node[@text='OK']"}) | _selectors(_selectors(_selectors(st.just({"text": "a"}))))

STEPS = VALID_TASKS.map(lambda task: task["steps"][0])

# Mutations ------------------------------------------------------------------------------------------------------

ODD = ("then", "else", "when", "GROUP", "click", "timeout_ms", "", "a/b~c", "${x}", "$${", " ", "(a+)+", "//a[")
WORDS = sorted(
    {
        *(field.alias or name for name, field in Selector.model_fields.items()),
        *(field.alias or name for step in IMPLEMENTED_ACTIONS.values() for name, field in step.model_fields.items()),
        *(field.alias or name for name, field in Task.model_fields.items()),
        *IMPLEMENTED_ACTIONS,
        *ODD,
    }
)
# Not ending in a line break: before it `$` matches in Python, and so for jsonschema, and nowhere else.
SHORT_TEXTS = st.text(max_size=5).map(lambda text: text.rstrip("\n"))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 40_000),
    st.sampled_from([10**300, 0.5, -1.5, 1e300]),
    st.sampled_from(WORDS),
    SHORT_TEXTS,
)
KEYS = st.sampled_from(WORDS) | SHORT_TEXTS
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


def containers(value: object) -> list[Any]:
    """Every object and list of a tree."""
    found = [value] if isinstance(value, dict | list) else []
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found += containers(inner)
    return found


@st.composite
def mutated(draw: Callable[[st.SearchStrategy[Any]], Any], *, changes: int = 2) -> Document:
    """A valid task with some values replaced, removed or added."""
    document: Document = deepcopy(draw(VALID_TASKS))  # what strategies give may be shared
    for _ in range(draw(st.integers(1, changes))):
        holder = draw(st.sampled_from(containers(document)))
        if not draw(st.booleans()) and holder:
            keys = list(range(len(holder))) if isinstance(holder, list) else list(holder)
            del holder[draw(st.sampled_from(keys))]
        elif isinstance(holder, list):
            holder.insert(draw(st.integers(0, len(holder))), deepcopy(draw(TREES | STEPS)))
        else:
            key = draw(st.sampled_from(WORDS) | st.sampled_from([*holder, ""]))
            holder[key] = deepcopy(draw(TREES | SELECTORS))
    return document
