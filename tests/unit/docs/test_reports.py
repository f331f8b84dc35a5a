"""The page on reports names what reports hold, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

from droidfleet_controller.rollouts.report import csv_form, json_form, material
from droidfleet_controller.rollouts.report.service import ReportForm
from unit.rollouts.rolling import phones, rolling, spec
from unit.rollouts.test_report import written

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reports.md").read_text()


def table(heading: str) -> list[str]:
    """The words in the first column of the table under a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_the_columns_are_those_of_the_table() -> None:
    assert table("The table") == [*csv_form.COLUMNS, f"{csv_form.OUTPUT}NAME"]


async def test_the_fields_are_those_of_the_object(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(1)))).rollout.rollout_id
        report = json.loads(await written(fleet, tmp_path, rollout_id, ReportForm.JSON))
        assert table("Everything") == list(report)
        assert report["reportVersion"] == json_form.REPORT_VERSION


def test_the_bounds_are_those_of_the_page() -> None:
    text = " ".join(PAGE.split())
    for bound in (
        f"Up to {material.MAX_SIGNATURES} signatures",
        f"up to {material.PHONES_SHOWN} phones",
        f"up to {material.MAX_PICTURES_BYTES // 1024 // 1024} MiB",
        f"at most {csv_form.MAX_OUTPUT_COLUMNS} columns",
    ):
        assert bound in text
