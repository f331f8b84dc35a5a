"""Each decision has a number of its own and stands in the list."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[3] / "docs" / "decisions"
DECISIONS = sorted(path.name for path in FOLDER.glob("[0-9]*.md"))


def test_numbers_follow_each_other() -> None:
    assert [name[:4] for name in DECISIONS] == [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]


def test_list_names_every_decision() -> None:
    listed = (FOLDER / "README.md").read_text()
    assert [name for name in DECISIONS if f"({name})" not in listed] == []
