"""The random choices of a run: each from the run's seed and its own place, so that a run can be replayed.

A choice does not depend on the ones before it: a replay on a slower phone, or with a step left out, draws the same.
"""

from __future__ import annotations

from random import Random


def chance(seed: int, path: str, iteration: int, purpose: str) -> Random:
    """The generator of one choice. Seeded by a text, which Python promises to read the same in every version."""
    return Random(f"{seed}/{path}/{iteration}/{purpose}")  # noqa: S311 - a replay must draw the same


def drawn(probability: int, *, seed: int, path: str, iteration: int) -> bool:
    """Whether a step of that probability, in percent, is run. 0 never is, 100 always."""
    if probability in (0, 100):
        return probability == 100
    return chance(seed, path, iteration, "probability").randrange(100) < probability
