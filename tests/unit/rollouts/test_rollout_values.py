"""Values for all phones and for single ones: each phone gets its own, and secrets are nowhere else and forgotten."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.fleet.labels import Changes
from droidfleet_controller.rollouts.spec import RolloutSpec, Target
from droidfleet_controller.rollouts.states import Control, RolloutState
from droidfleet_controller.rollouts.values import digest, equal, joined, own_places, split, values_id
from droidfleet_shared.errors import ConflictError
from droidfleet_shared.secrets import HIDDEN
from support.controller import document
from unit.rollouts.rolling import Rolling, phones, rolling, spec

SECRET, OTHER = "correct-horse-battery", "wrong-horse-battery"
TASK = document(inputs={"item": {"type": "string"}, "pin": {"type": "secret"}})
TEXT = spec(
    *phones(3),
    inputs={"item": "green tea", "pin": SECRET},
    deviceInputs={"phone-02": {"item": "coffee"}, "phone-03": {"pin": OTHER}},
)


def sent(fleet: Rolling, device: str) -> dict[str, object]:
    """The values in the task that a phone was sent."""
    values = json.loads(fleet.dispatch.document(device).executions[0].task)["inputValues"]
    assert isinstance(values, dict)
    return values


def stored(folder: Path) -> bytes:
    """Everything in the files of the database."""
    return b"".join(file.read_bytes() for file in folder.glob("test.db*"))


async def test_each_phone_gets_its_own_values_over_those_for_all(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3), task=TASK) as fleet:
        await fleet.start(TEXT)
        assert sent(fleet, "phone-01") == {"item": "green tea", "pin": SECRET}
        assert sent(fleet, "phone-02") == {"item": "coffee", "pin": SECRET}
        assert sent(fleet, "phone-03") == {"item": "green tea", "pin": OTHER}


async def test_the_document_is_kept_without_secrets(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3), task=TASK) as fleet:
        view = await fleet.start(TEXT)
        assert dict(view.rollout.spec.inputs) == {"item": "green tea", "pin": HIDDEN}
        assert view.rollout.spec.device_inputs["phone-03"] == {"pin": HIDDEN}
        decisions = await fleet.rollouts.decisions(view.rollout.rollout_id, after=0, limit=100)
        assert SECRET not in repr((view, decisions, await fleet.dispatch.log()))


@pytest.mark.parametrize("control", [None, Control.ABORT])
async def test_secrets_are_forgotten_when_the_rollout_has_ended(tmp_path: Path, control: Control | None) -> None:
    async with rolling(tmp_path, *phones(3), task=TASK) as fleet:
        text = json.dumps({**json.loads(TEXT), "waves": [{"size": 1}, {}]})
        rollout_id = (await fleet.start(text)).rollout.rollout_id
        await fleet.finish(*(await fleet.live(rollout_id)).values())
        assert SECRET in repr(await fleet.kept()), "the second wave needs it"
        if control is not None:
            await fleet.control(rollout_id, control)
        await fleet.run_all(rollout_id)
        kept = await fleet.kept()
        assert len(kept) == 3
        assert {secrets for _, secrets in kept.values()} == {'{"pin": null}'}
    content = stored(tmp_path)
    assert SECRET.encode() not in content
    assert OTHER.encode() not in content


async def test_a_joiner_gets_the_values_that_the_document_has_for_it(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3), task=TASK) as fleet:
        await fleet.labels.change(["phone-01"], Changes(set={"site": "berlin"}), actor="test")
        text = json.dumps({**json.loads(TEXT), "target": {"query": "site=berlin"}, "membership": "CONTINUOUS"})
        await fleet.start(text)
        await fleet.labels.change(["phone-03"], Changes(set={"site": "berlin"}), actor="test")
        await fleet.pass_time(1)
        assert sent(fleet, "phone-03") == {"item": "green tea", "pin": OTHER}


async def test_the_same_request_with_another_secret_is_refused(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3), task=TASK) as fleet:
        rollout_id = (await fleet.start(TEXT, request_id="req-1")).rollout.rollout_id
        with pytest.raises(ConflictError):
            await fleet.start(TEXT.replace(SECRET, "another"), request_id="req-1")
        with pytest.raises(ConflictError):
            await fleet.start(TEXT.replace("coffee", "cocoa"), request_id="req-1")
        await fleet.run_all(rollout_id)
        assert (await fleet.view(rollout_id)).rollout.state is RolloutState.SUCCEEDED
        assert (await fleet.start(TEXT, request_id="req-1")).rollout.rollout_id == rollout_id


async def test_nothing_of_a_refused_rollout_is_in_the_database(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3), task=TASK) as fleet:
        planned = await fleet.rollouts.plan(TEXT.replace('"size"', '"sizes"').replace("phone-02", "phone-99"))
        assert not planned.valid
        assert await fleet.kept() == {}
    with sqlite3.connect(tmp_path / "test.db") as connection:
        assert connection.execute("SELECT count(*) FROM rollouts").fetchone() == (0,)
    connection.close()


names = st.sampled_from(["a", "b", "c"])
values = st.dictionaries(names, st.text(max_size=3) | st.integers(0, 3), max_size=3)


@given(inputs=values, own=st.dictionaries(st.sampled_from(["p1", "p2"]), values), secret=st.frozensets(names))
def test_a_document_that_was_split_can_be_joined_again(
    inputs: dict[str, str | int], own: dict[str, dict[str, str | int]], secret: frozenset[str]
) -> None:
    asked = RolloutSpec.model_validate(
        {"task": "t", "target": Target(devices=("p1",)), "inputs": inputs, "deviceInputs": own}
    )
    shown, kept = split(asked, secret)
    assert joined(shown, kept) == asked
    assert all(shown.inputs[name] == HIDDEN for name in secret & inputs.keys())
    assert digest(shown) == digest(asked)
    assert equal(kept, split(asked, frozenset())[1])
    for device in ("p1", "p2"):
        place = values_id("", asked, own_places(asked), device)
        got = {**kept[place].values, **kept[place].secrets} if place in kept else {}
        assert got == {**inputs, **own.get(device, {})}
