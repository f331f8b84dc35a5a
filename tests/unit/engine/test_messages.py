"""Words of the engine's messages."""

from __future__ import annotations

from droidfleet_agent.engine.messages import counted


def test_one_of_a_thing_is_counted_in_the_singular() -> None:
    assert [counted(number, "round") for number in (0, 1, 2)] == ["0 rounds", "1 round", "2 rounds"]
