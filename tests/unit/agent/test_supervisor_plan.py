"""Which phones get an agent, lose it, or get it again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from droidfleet_agent.supervisor.plan import (
    BACKOFF_CAP_S,
    STABLE_S,
    Drop,
    Stage,
    Start,
    Step,
    Stop,
    Watched,
    ended,
    plan,
    see,
    started,
    stopping,
)

GRACE_S = 60.0


def _plan(watched: dict[str, Watched], now: float) -> list[Step]:
    return plan(watched, now=now, grace_s=GRACE_S)


def _running(*, started_at: float = 0.0) -> dict[str, Watched]:
    return {"s": started(Watched("s"), now=started_at)}


@pytest.mark.parametrize(("word", "starts"), [("device", True), ("unauthorized", True), ("offline", False)])
def test_a_phone_that_is_usable_or_waits_for_consent_gets_an_agent(word: str, starts: bool) -> None:
    assert _plan(see({}, {"s": word}, now=0), 0) == ([Start("s", "attached")] if starts else [])


def test_a_phone_with_an_agent_gets_no_second_one() -> None:
    assert _plan(see(_running(), {"s": "device"}, now=5), 5) == []


def test_an_unplugged_phone_keeps_its_agent_for_the_grace_period() -> None:
    gone = see(_running(), {}, now=10)
    assert _plan(gone, 10 + GRACE_S - 0.1) == []
    assert _plan(gone, 10 + GRACE_S) == [Stop("s", "unplugged for 60 s")]


def test_a_phone_that_comes_back_in_time_keeps_its_agent() -> None:
    back = see(see(_running(), {}, now=10), {"s": "device"}, now=50)
    assert _plan(back, 1000) == []


def test_the_grace_period_counts_from_when_it_was_unplugged_first() -> None:
    gone = see(see(_running(), {}, now=10), {}, now=60)
    assert _plan(gone, 10 + GRACE_S) == [Stop("s", "unplugged for 60 s")]


def test_an_unplugged_phone_is_dropped_once_its_agent_is_gone() -> None:
    gone = {"s": stopping(see(_running(), {}, now=0)["s"])}
    assert _plan(gone, GRACE_S) == []
    assert _plan({"s": ended(gone["s"], now=61, jitter=0)}, 61) == [Drop("s")]


def test_a_phone_that_is_back_while_its_agent_ends_gets_a_new_one() -> None:
    back = see({"s": stopping(see(_running(), {}, now=0)["s"])}, {"s": "device"}, now=61)
    assert _plan(back, 61) == []
    again = {"s": ended(back["s"], now=62, jitter=1)}
    assert _plan(again, 62) == [Start("s", "attached")]


def test_a_crashed_agent_is_started_again_with_growing_pauses() -> None:
    phone = Watched("s")
    pauses: list[float] = []
    now = 0.0
    for _ in range(10):
        phone = ended(started(phone, now=now), now=now, jitter=1)
        pauses.append(phone.retry_at - now)
        assert _plan({"s": phone}, phone.retry_at - 0.01) == []
        now = phone.retry_at
        assert len(_plan({"s": phone}, now)) == 1
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == BACKOFF_CAP_S


def test_pauses_are_spread_and_never_nothing() -> None:
    phone = started(Watched("s"), now=0)
    assert ended(phone, now=0, jitter=0).retry_at == 0.5
    assert ended(phone, now=0, jitter=1).retry_at == 1


def test_an_agent_that_lived_long_starts_the_pauses_afresh() -> None:
    phone = replace(started(Watched("s"), now=0), failures=9)
    assert ended(phone, now=STABLE_S, jitter=1).failures == 1


def test_a_crashed_agent_of_an_unplugged_phone_is_not_started() -> None:
    phone = ended(see(_running(), {}, now=0)["s"], now=1, jitter=0)
    assert phone.stage is Stage.NONE
    assert _plan({"s": phone}, 30) == []
