"""Journals for the contract suites: each test runs with every one of them. A new one joins in `support.journals`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from droidfleet_agent.journal.port import Journal, Limits
from support.journals import JOURNALS, Open


@pytest.fixture(params=JOURNALS)
async def open_journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    made: list[Journal] = []

    def open_one(limits: Limits) -> Journal:
        made.append(JOURNALS[request.param](tmp_path / f"journal-{len(made)}", limits))
        return made[-1]

    yield open_one
    for journal in made:
        await journal.close()


@pytest.fixture
def journal(open_journal: Open) -> Journal:
    return open_journal(Limits())
