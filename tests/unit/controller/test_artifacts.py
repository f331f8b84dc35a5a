"""Artifacts of agents: kept once, by their digest, within bounds, and never holding up what comes behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.dispatch.artifacts import Artifacts
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.store.artifacts import StoredArtifact
from droidfleet_shared.artifacts import MAX_RUN_ARTIFACTS
from droidfleet_shared.errors import NotFoundError
from unit.controller.dispatching import ARTIFACT_QUOTA_BYTES, Dispatch, dispatching
from unit.controller.said import accepted, artifact, finished, started

PICTURE = b"\x89PNG and so on"
DIGEST = sha256(PICTURE).hexdigest()


async def begun(dispatch: Dispatch, device: str = "phone-01") -> str:
    execution_id = (await dispatch.run(device)).executions[0].execution_id
    await dispatch.deliver(accepted(execution_id, agent=device), started(execution_id, agent=device))
    return execution_id


async def kept(dispatch: Dispatch, execution_id: str) -> list[StoredArtifact]:
    return list((await dispatch.reading.detailed(execution_id)).artifacts)


def files(folder: Path) -> list[Path]:
    return sorted(file for file in (folder / "artifacts").rglob("*") if file.is_file())


def reader(dispatch: Dispatch, folder: Path) -> Artifacts:
    return Artifacts(dispatch.database, ArtifactFiles(folder / "artifacts"))


async def test_an_artifact_becomes_a_private_file_that_can_be_read_again(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(artifact(mine, PICTURE, sequence=3))
        [stored] = await kept(dispatch, mine)
        assert (stored.step_id, stored.path, stored.name, stored.sha256) == ("look", "/steps/0", "page", DIGEST)
        [file] = files(tmp_path)
        assert (file.name, file.stat().st_mode & 0o777, file.read_bytes()) == (DIGEST, 0o600, PICTURE)
        assert await reader(dispatch, tmp_path).read(mine, DIGEST) == PICTURE


async def test_the_event_log_names_an_artifact_and_does_not_hold_it(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(artifact(mine, PICTURE, sequence=3))
        [event] = [each for each in await dispatch.log() if each.kind == "ArtifactStored"]
        assert json.loads(event.payload)["artifact"]["sha256"] == DIGEST
        assert "data" not in json.loads(event.payload)
        assert event.summary == "phone-01: step look kept page (14 bytes)"


async def test_the_same_content_is_one_file_and_the_same_event_one_artifact(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        first, second = artifact(mine, PICTURE, sequence=3), artifact(mine, PICTURE, sequence=4, name="again")
        await dispatch.deliver(first, first)
        await dispatch.deliver(first, second)
        assert [each.name for each in await kept(dispatch, mine)] == ["page", "again"]
        assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("digest", ["0" * 64, "../../../etc/passwd", "A" * 64])
async def test_a_content_that_is_not_what_its_digest_says_is_reported_as_unreadable(
    tmp_path: Path, digest: str
) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(artifact(mine, PICTURE, sequence=3, digest=digest))
        assert [each.kind for each in await dispatch.log()][-1] == "BadMessage"
        assert (await kept(dispatch, mine), files(tmp_path)) == ([], [])


async def test_artifacts_of_unknown_executions_other_agents_and_other_attempts_are_not_kept(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "phone-01", "phone-02") as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(
            artifact("x-unknown", PICTURE, sequence=3),
            artifact(mine, PICTURE, sequence=3, agent="phone-02"),
            artifact(mine, PICTURE, sequence=3, attempt=2),
        )
        assert (await kept(dispatch, mine), files(tmp_path)) == ([], [])


async def test_an_attempt_has_no_more_artifacts_than_agents_keep_to(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        said = [artifact(mine, bytes([number]), sequence=3 + number) for number in range(MAX_RUN_ARTIFACTS + 2)]
        await dispatch.deliver(*said[:30])
        await dispatch.deliver(*said[30:])
        assert len(await kept(dispatch, mine)) == MAX_RUN_ARTIFACTS


async def test_past_the_quota_the_files_go_that_were_not_used_for_longest(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        old, newer, newest = (bytes([number]) * (ARTIFACT_QUOTA_BYTES // 2) for number in range(3))
        for sequence, data in enumerate((old, newer, old, newest), start=3):
            dispatch.clock.advance(1)
            await dispatch.deliver(artifact(mine, data, sequence=sequence))
        assert [each.available for each in await kept(dispatch, mine)] == [True, False, True, True]
        assert {file.name for file in files(tmp_path)} == {sha256(data).hexdigest() for data in (old, newest)}
        with pytest.raises(NotFoundError) as caught:
            await reader(dispatch, tmp_path).read(mine, sha256(newer).hexdigest())
        assert caught.value.code == "ARTIFACT_GONE"


async def test_what_is_larger_than_the_quota_is_not_kept(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(artifact(mine, b"x" * (ARTIFACT_QUOTA_BYTES + 1), sequence=3))
        assert (await kept(dispatch, mine), files(tmp_path)) == ([], [])


async def test_a_disk_that_takes_no_artifact_holds_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_self: ArtifactFiles, _contents: Mapping[str, bytes]) -> None:
        raise OSError(28, "No space left on device")

    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        monkeypatch.setattr(ArtifactFiles, "keep", full)
        messages = await dispatch.deliver(artifact(mine, PICTURE, sequence=3), finished(mine))
        assert (await dispatch.get(mine)).state is ExecutionState.SUCCEEDED
        assert dispatch.bus.acknowledged[-2:] == [message.sequence for message in messages]
        assert await kept(dispatch, mine) == []


async def test_an_artifact_that_arrives_after_the_result_is_kept(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(finished(mine))
        await dispatch.deliver(artifact(mine, PICTURE, sequence=3))
        assert len(await kept(dispatch, mine)) == 1
        assert (await dispatch.get(mine)).state is ExecutionState.SUCCEEDED


@pytest.mark.parametrize("digest", ["0" * 64, "../../../../etc/passwd", "", DIGEST + "/"])
async def test_only_artifacts_of_the_execution_can_be_read(tmp_path: Path, digest: str) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(artifact(mine, PICTURE, sequence=3))
        with pytest.raises(NotFoundError) as caught:
            await reader(dispatch, tmp_path).read(mine, digest)
        assert caught.value.code == "ARTIFACT_NOT_FOUND"
        with pytest.raises(NotFoundError) as caught:
            await reader(dispatch, tmp_path).read("x-unknown", DIGEST)
        assert caught.value.code == "EXECUTION_NOT_FOUND"


def test_a_sweep_removes_drafts_and_files_that_nobody_knows(tmp_path: Path) -> None:
    kept_files = ArtifactFiles(tmp_path / "artifacts")
    other = sha256(b"other").hexdigest()
    kept_files.keep({DIGEST: PICTURE, other: b"other"})
    draft = tmp_path / "artifacts" / DIGEST[:2] / f"{DIGEST}.draft"
    draft.write_bytes(b"ha")
    assert kept_files.sweep({DIGEST}) == 2
    assert [file.name for file in files(tmp_path)] == [DIGEST]


def test_a_file_that_was_changed_is_not_given_out(tmp_path: Path) -> None:
    kept_files = ArtifactFiles(tmp_path / "artifacts")
    kept_files.keep({DIGEST: PICTURE})
    [file] = files(tmp_path)
    file.write_bytes(b"something else")
    assert kept_files.read(DIGEST) is None


@pytest.mark.parametrize("digest", ["../x", "", "a" * 63, "A" * 64, "a" * 64 + "\n"])
def test_nothing_but_a_digest_names_a_file(tmp_path: Path, digest: str) -> None:
    with pytest.raises(ValueError, match="SHA-256"):
        ArtifactFiles(tmp_path).read(digest)
