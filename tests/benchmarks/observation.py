"""What a screen costs a model: tokens of the observation of real dumps and scenarios, and the time to make it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from statistics import median

from benchmarks.figures import Figure, median_ms
from benchmarks.matching import _list
from droidfleet_designer.observation.observe import observe
from droidfleet_shared.protocol.effects import effect_words
from droidfleet_shared.screen.node import Screen
from droidfleet_shared.screen.snapshot import Snapshot, snapshot_of
from support.known_screens import dumped_screens, scenario_screens, size_of
from support.screens import dump, screen_of, window
from support.tokens import tokens

ROUNDS = 15
MOST_TOKENS = 3_500
MOST_MS = 50.0
"""What a turn may take beside the model altogether; of a screen as apps have it."""

LARGE = 500


def figures() -> list[Figure]:
    """Tokens by the vocabulary that needs more (o200k, cl100k), and medians of the time from snapshot to text."""
    shipped = scenario_screens()
    largest = max(shipped, key=lambda name: size_of(shipped[name]))
    longest = max(shipped, key=lambda name: _tokens(snapshot_of(shipped[name])))
    screens = {
        **{f"dump {name}": where for name, where in dumped_screens().items()},
        f"largest scenario screen ({largest})": shipped[largest],
        f"longest scenario screen ({longest})": shipped[longest],
        f"dense list of {LARGE} nodes": screen_of(dump(window(_list(LARGE)))),
    }
    return [*_figures(screens), *_over_all(shipped)]


def _figures(screens: Mapping[str, Screen]) -> Iterator[Figure]:
    for name, where in screens.items():
        snapshot = snapshot_of(where)
        note = f"{size_of(where)} nodes"
        yield Figure(f"observation of {name}", _tokens(snapshot), "tokens", MOST_TOKENS, note=note)
        most_ms = MOST_MS if size_of(where) < LARGE // 2 else None
        yield Figure(f"observe {name}", median_ms(_times(snapshot)), "ms", most_ms, note=note)


def _over_all(shipped: Mapping[str, Screen]) -> Iterator[Figure]:
    shares = [_tokens(snapshot_of(where)) / size_of(where) for where in shipped.values() if size_of(where)]
    yield Figure(
        "observation: tokens for 100 nodes", 100 * median(shares), "tokens", MOST_TOKENS, note=f"{len(shares)} screens"
    )


def _tokens(snapshot: Snapshot) -> int:
    return tokens(observe(snapshot, number=1, words=effect_words()).text)


def _times(snapshot: Snapshot) -> list[float]:
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        observe(snapshot, number=1, words=effect_words())
        times.append(time.perf_counter() - start)
    return times
