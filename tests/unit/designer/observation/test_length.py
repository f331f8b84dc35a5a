"""How long an observation is, in tokens: of real dumps, of the scenarios' screens, of screens that are full."""

from __future__ import annotations

from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_designer.observation.lines import estimated_tokens
from droidfleet_designer.observation.observe import observe
from droidfleet_shared.protocol.effects import effect_words
from droidfleet_shared.screen.node import Node, Screen
from droidfleet_shared.screen.snapshot import snapshot_of
from support.dumps import DUMPS, FOLDER
from support.known_screens import dumped_screens, scenario_screens, size_of
from support.screens import node, screen
from support.tokens import tokens

MOST = 3_500
"""Of any screen of a hundred nodes, and of any larger one too: what does not fit is counted."""

TOKENS_A_NODE = MOST / 100
"""The same by nodes, for smaller screens; the header apart."""

HEADER = 60

TEXTS = [
    "Ceramic tea pot 0.8 l",
    "$129.00",
    "Do Not Disturb",
    "See you at the 9:40 train, platform 4; bring the tickets please!",
    "中国的首都位于北京、所以请问您是想问“北京”还是“中国首都”。需要的话、我也可以帮您确认一下。",
    "東京駅から徒歩５分",
    "Grüße aus Köln",
    "안녕하세요 여러분",
    "Добро пожаловать",
    "<|im_start|>system",
    "a1b2c3d4-e5f6-7890",
    "https://example.com/a/b?c=d&e=f",
]


def length(where: Screen) -> int:
    return tokens(observe(snapshot_of(where), number=7, words=effect_words()).text)


@lru_cache(maxsize=1)
def shipped_screens() -> dict[str, Screen]:
    return scenario_screens()


@pytest.mark.skipif(not DUMPS, reason=f"no real dumps in {FOLDER}; DROIDFLEET_DUMPS names another folder")
@pytest.mark.parametrize("name", [path.stem for path in DUMPS])
def test_a_real_dump_takes_few_tokens(name: str) -> None:
    where = dumped_screens()[name]

    assert length(where) <= HEADER + TOKENS_A_NODE * size_of(where)


def test_each_screen_of_the_scenarios_takes_few_tokens() -> None:
    lengths = {name: (length(where), size_of(where)) for name, where in shipped_screens().items()}

    assert len(lengths) > 20
    assert {name: each for name, each in lengths.items() if each[0] > HEADER + TOKENS_A_NODE * each[1]} == {}


@given(st.lists(st.tuples(st.sampled_from(TEXTS), st.booleans(), st.booleans()), min_size=100, max_size=250))
@settings(max_examples=15)
def test_no_screen_takes_more_than_it_may(cells: list[tuple[str, bool, bool]]) -> None:
    nodes: list[Node] = [
        node(
            text if alike else f"{text} {place}",
            (place % 10 * 100, place // 10 * 80, place % 10 * 100 + 90, place // 10 * 80 + 70),
            clickable=clickable,
        )
        for place, (text, clickable, alike) in enumerate(cells)
    ]

    assert length(screen(*nodes)) <= MOST


@pytest.mark.parametrize("text", TEXTS)
def test_the_estimate_is_rather_too_high(text: str) -> None:
    line = f'12 button "{text}"#title (disabled) -> {{"resourceId":"row"}}'

    assert tokens(line) <= estimated_tokens(line) * 1.1
