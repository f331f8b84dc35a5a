"""What a document may cost: its size bounds the time of a validation, whatever it holds."""

import json
import time
from collections.abc import Iterator

import pytest

from droidfleet_shared.protocol.expression_rules import MAX_PATTERNS, MAX_XPATHS
from droidfleet_shared.protocol.suggestions import nearest
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES
from droidfleet_shared.protocol.validate import validate_task
from unit.protocol.documents import Document, click, codes, task

ENDLESS_S = 20.0
"""Processor time. Without bounds the worst of these documents take minutes; with them less than a second."""

LONG = "abcdefgh" * 7
NAMES = [f"{LONG[number % 8 :]}{number}" for number in range(600)]


def any_of(*selectors: Document) -> Document:
    """A task that asks whether one of them is visible."""
    condition = {"any": [{"visible": selector} for selector in selectors]}
    return task({"id": "a", "action": "ASSERT", "condition": condition})


COSTLY = [
    task(
        inputs={f"input_{number}": {"type": "string", "default": ""} for number in range(2_500)},
        inputValues={f"inputx_{number}": 1 for number in range(4_000)},
    ),
    task(*[{"id": name, "action": "BRANCH", "condition": {}, "goto": f"{name}x"} for name in NAMES]),
    task(
        *[click(id=name, selector={"image": {"artifact": f"{name}x"}}) for name in NAMES],
        artifacts=dict.fromkeys(NAMES, ""),
    ),
    task(click(**{f"{name}x": 1 for name in NAMES})),
    task(*[{"id": name, "action": name} for name in NAMES]),
    task(click(selector={"text": "${outputs.total}" * 10_000})),
    task(click(selector={"text": "${" * 60_000})),
    any_of(*[{"textMatches": f"\\pL{{1,50}}{number}"} for number in range(4_000)]),
    any_of(*[{"xpath": f"//a[@b='{number}']"} for number in range(4_000)]),
    task(*[{"id": "g", "action": "GROUP", "steps": [{}] * 100} for _ in range(300)]),
]  # fmt: skip


@pytest.mark.parametrize("document", COSTLY)
def test_document_that_is_made_to_cost_much_is_answered(document: Document) -> None:
    text = json.dumps(document, ensure_ascii=False)
    assert len(text) < MAX_DOCUMENT_BYTES
    begun = time.process_time()
    assert validate_task(text).errors
    assert time.process_time() - begun < ENDLESS_S


def test_word_is_compared_with_a_bounded_number_of_others() -> None:
    taken = 0

    def words() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield f"word{taken}"

    assert nearest("wrod7", words()) is not None
    assert taken <= 201


@pytest.mark.parametrize(
    ("found", "words", "meant"),
    [
        ("itme", ["name", "item"], "item"),
        ("totl", ["title", "total", "toll"], "total"),
        ("x", ["y"], None),
        ("", ["a"], None),
        ("a", [], None),
        ("a" * 5_000, ["a" * 5_000], None),
    ],
)
def test_nearest_word_is_the_one_that_was_meant(found: str, words: list[str], meant: str | None) -> None:
    assert nearest(found, words) == meant


def test_different_patterns_are_counted_over_the_whole_task() -> None:
    def with_patterns(number: int) -> Document:
        return task(*[click(id=f"{each}", selector={"textMatches": f"a{each // 2}"}) for each in range(number)])

    assert codes(with_patterns(2 * MAX_PATTERNS)) == []
    refused = task(
        *[click(id=f"{number}", selector={"textMatches": f"a{number}"}) for number in range(MAX_PATTERNS + 1)]
    )
    assert codes(refused) == [("/steps", "OUT_OF_RANGE")]


def test_different_xpaths_are_counted_over_the_whole_task() -> None:
    def selector(number: int) -> Document:
        return {"xpath": f"//a[@b='{number}']"}

    steps = [click(id=f"{at}", selector=selector(at), unlessVisible=selector(at + 1_000)) for at in range(200)]
    assert codes(task(*steps)) == []
    steps[0]["when"] = {"visible": selector(-1)}
    assert len(steps) * 2 == MAX_XPATHS
    assert codes(task(*steps)) == [("/steps", "OUT_OF_RANGE")]


def test_one_bad_pattern_is_reported_wherever_it_stands() -> None:
    document = task(click(selector={"textMatches": "("}, unlessVisible={"descriptionMatches": "("}))
    assert codes(document) == [
        ("/steps/0/selector/textMatches", "BAD_REGEX"),
        ("/steps/0/unlessVisible/descriptionMatches", "BAD_REGEX"),
    ]
