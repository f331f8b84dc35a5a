"""The shipped example tasks are valid templates, and the demo's is among them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from droidfleet_demo.story import TASK_FILE, TASK_ID
from droidfleet_shared.protocol.validate import validate_template

CHECKOUT = Path(__file__).parents[3]
EXAMPLES = sorted((CHECKOUT / "examples").glob("*.json"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_is_a_valid_template_named_as_its_file(path: Path) -> None:
    assert validate_template(path.read_bytes()).errors == ()
    assert json.loads(path.read_bytes())["taskId"] == path.stem


def test_demo_runs_an_example() -> None:
    assert json.loads((CHECKOUT / TASK_FILE).read_bytes())["taskId"] == TASK_ID
