"""Artifacts as files: whatever a task or a phone calls them, a file lands in the folder and nothing is written over."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_shared.artifacts import file_name, save
from droidfleet_shared.errors import PreconditionError


@given(step=st.text(), name=st.text(), media_type=st.text() | st.just("image/png"))
def test_no_name_leaves_the_folder_or_hides(step: str, name: str, media_type: str) -> None:
    made = file_name(1, step_id=step, name=name, media_type=media_type)
    assert Path(made).name == made
    assert made.isascii()
    assert made.startswith("001-")
    assert len(made) < 255


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "a\x00b", "a/b\\c", "CON"])
def test_a_name_that_looks_like_a_path_becomes_a_plain_one(tmp_path: Path, name: str) -> None:
    file = save(tmp_path / "out", file_name(7, step_id=name, name=name, media_type="image/png"), b"x")
    assert file.parent == tmp_path / "out"
    assert file.read_bytes() == b"x"


def test_a_names_own_suffix_is_not_doubled() -> None:
    assert file_name(3, step_id="look", name="page.png", media_type="image/png") == "003-look-page.png"


def test_a_file_is_private(tmp_path: Path) -> None:
    assert save(tmp_path, "a.png", b"x").stat().st_mode & 0o777 == 0o600


def test_the_same_content_is_saved_once_and_another_beside_it(tmp_path: Path) -> None:
    assert [save(tmp_path, "a.png", data).name for data in (b"x", b"x", b"y", b"y")] == [
        "a.png",
        "a.png",
        "a-2.png",
        "a-2.png",
    ]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"precious")
    (tmp_path / "a.png").symlink_to(target)
    assert save(tmp_path, "a.png", b"precious").name == "a-2.png"
    assert target.read_bytes() == b"precious"


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PreconditionError) as caught:
        save(tmp_path / "file", "a.png", b"x")
    assert caught.value.code == "FILE_UNWRITABLE"
