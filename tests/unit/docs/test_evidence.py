"""The tests that `docs/protocol/evidence.md` calls as witnesses exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "protocol" / "evidence.md"
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))


def test_the_page_names_tests() -> None:
    assert NAMED


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_exists(file: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"), re.MULTILINE)
