"""Saving and reading tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from droidfleet_shared.errors import ConflictError, InvalidInputError
from support.controller import document
from unit.controller.dispatching import dispatching


async def test_a_task_is_kept_exactly_as_it_was_written(tmp_path: Path) -> None:
    text = '{\n\t"taskId": "tea", "schemaVersion":1,\n "steps":[{"action":"BACK","id":"ü\\u00fc"}] }\n'
    async with dispatching(tmp_path) as dispatch:
        saved = await dispatch.library.save(text, actor="test")
        assert saved.created
        assert (await dispatch.library.get("tea")).body == text


async def test_the_library_counts_revisions_and_keeps_the_older_ones(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        texts = [document(steps=number) for number in (1, 2, 3)]
        for number, text in enumerate(texts, 1):
            assert (await dispatch.library.save(text, actor="test")).task.revision == number
        for number, text in enumerate(texts, 1):
            assert (await dispatch.library.get("tea", number)).body == text
        assert (await dispatch.library.get("tea")).revision == 3


async def test_the_same_text_is_the_same_revision(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.library.save(document(steps=1), actor="test")
        again = await dispatch.library.save(document(steps=1), actor="test")
        assert (again.created, again.task.revision) == (False, 1)
        await dispatch.library.save(document(steps=2), actor="test")
        back = await dispatch.library.save(document(steps=1), actor="test")
        assert (back.created, back.task.revision) == (True, 3)


async def test_a_stated_revision_is_kept_or_refused_but_never_changed(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        assert (await dispatch.library.save(document(revision=5), actor="test")).task.revision == 5
        assert not (await dispatch.library.save(document(revision=5), actor="test")).created
        for revision in (4, 5):
            with pytest.raises(ConflictError) as caught:
                await dispatch.library.save(document(revision=revision, steps=1), actor="test")
            assert caught.value.code == "REVISION_EXISTS"
            assert '"revision": 6' in caught.value.hint
        assert (await dispatch.library.save(document(steps=1), actor="test")).task.revision == 6


async def test_a_task_of_one_agent_is_no_template(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        with pytest.raises(InvalidInputError) as caught:
            await dispatch.library.save(document(agent="phone-01"), actor="test")
        assert caught.value.code == "INVALID_TASK"
        assert [getattr(issue, "path", "") for issue in caught.value.issues] == ["/assignedAgentName"]


async def test_the_list_has_the_newest_revision_of_each_task_without_texts(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        for task_id in ("b", "a", "c"):
            await dispatch.library.save(document(task_id, steps=1), actor="test")
            await dispatch.library.save(document(task_id, steps=2), actor="test")
        found = await dispatch.library.page(after="", limit=2)
        assert [(task.task_id, task.revision, task.body) for task in found] == [("a", 2, ""), ("b", 2, "")]
        assert [task.task_id for task in await dispatch.library.page(after="b", limit=2)] == ["c"]


async def test_saving_leaves_an_event(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.library.save(document(), actor="test")
        await dispatch.library.save(document(), actor="test")
        assert [event.summary for event in await dispatch.log()] == ["tea revision 1 saved"]
