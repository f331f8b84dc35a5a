"""The report for programs: one JSON object, whose long lists are written as they are read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import TypeVar

from droidfleet_controller.rollouts.report import records
from droidfleet_controller.rollouts.report.material import Material
from droidfleet_controller.rollouts.report.records import Record

REPORT_VERSION = 1

T = TypeVar("T")


async def write(material: Material, now: datetime) -> AsyncIterator[str]:
    """The report in pieces. One line for each item of a list."""
    head = {
        "reportVersion": REPORT_VERSION,
        "writtenAt": records.instant(now),
        "rollout": records.rollout_record(material.view),
        "waves": [records.wave_record(wave) for wave in material.view.waves],
        "failures": [records.failure_record(each) for each in await material.failures(pictures=False)],
    }
    yield _text(head)[:-1]
    async for piece in _list("decisions", material.decisions(), records.decision_record):
        yield piece
    async for piece in _list("membership", material.membership(), records.membership_record):
        yield piece
    async for piece in _list("members", material.members(), records.member_record):
        yield piece
    yield "\n}\n"


async def _list(name: str, items: AsyncIterator[T], record: Callable[[T], Record]) -> AsyncIterator[str]:
    yield f',\n"{name}": ['
    before = "\n"
    async for item in items:
        yield before + _text(record(item))
        before = ",\n"
    yield "\n]"


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
