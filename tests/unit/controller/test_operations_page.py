"""`docs/operations.md` says what the code does: settings, metrics, error codes."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from prometheus_client import Counter

from droidfleet_controller.admin import checks, comparing, invariants, settle
from droidfleet_controller.dispatch import deadlines, handover, reading
from droidfleet_controller.fleet.query import BAD_QUERY
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.rollouts.check import INVALID_ROLLOUT
from droidfleet_controller.schedules.check import INVALID_SCHEDULE
from droidfleet_controller.settings import ServeSettings

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operations.md").read_text()
PACKAGE = ROOT / "controller" / "droidfleet_controller"

INSIDE = {"BAD_MESSAGE", "ILLEGAL_MOVE", "EXPLORATION_FULL", "EXPLORATION_OVER", "REQUEST_TOO_LARGE"}
"""Codes that never leave the controller as an error: one becomes an event, one ends an exploration, one is told to the
client of the practice model, two are defects."""


def rows(heading: str) -> dict[str, list[str]]:
    """The table under a heading: the word in the first column to the other columns."""
    section = re.split(r"^#+ ", PAGE.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    cells = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in cells}


def raised() -> set[str]:
    """Every code with which the package raises an error, those of its clients left out."""
    found: set[str] = set()
    files = [file for file in PACKAGE.rglob("*.py") if not {"cli", "mcp"} & set(file.relative_to(PACKAGE).parts)]
    shared = ROOT / "shared" / "droidfleet_shared"
    for file in [*files, shared / "net.py", shared / "bus" / "suitability.py"]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error"):
                match node.args:
                    case [ast.Constant(value=str(code)), *_] if re.fullmatch("[A-Z_]+", code):
                        found.add(code)
    return (found | {BAD_QUERY, INVALID_ROLLOUT, INVALID_SCHEDULE}) - INSIDE


def test_every_setting_is_described_and_nothing_else() -> None:
    assert list(rows("Settings")) == list(ServeSettings.model_fields)


def test_the_defaults_are_those_of_the_code() -> None:
    described = rows("Settings")
    for name in ("listen", "http", "broker_listen", "heartbeat_s"):
        assert described[name][0].strip("`") == str(ServeSettings.model_fields[name].default)


def test_every_metric_is_listed_with_its_labels() -> None:
    described = {name: set(re.findall(r"`(\w+)`", columns[0])) for name, columns in rows("Metrics").items()}
    actual: dict[str, set[str]] = {}
    for metric in vars(Metrics()).values():
        if hasattr(metric, "_labelnames"):
            suffix = "_total" if isinstance(metric, Counter) else ""
            actual[metric._name + suffix] = set(metric._labelnames)
    assert described == actual


def test_every_error_code_is_explained_and_none_is_made_up() -> None:
    explained = {*rows("At the start"), *rows("In answers"), *rows("In backups and restores")} - {
        "TOKEN_REQUIRED",
        "INTERNAL",
    }
    assert explained == raised()


def test_every_code_of_a_check_is_explained_and_none_is_made_up() -> None:
    sources = "".join(inspect.getsource(module) for module in (checks, comparing))
    found = set(re.findall(r'"((?:ARTIFACT|STREAM|CONSUMER|EVENTS|DOCUMENT|AGENT|RUNS|NOT|BROKER)_[A-Z_]+)"', sources))
    assert rows("Checks").keys() == {*invariants.RULES, *found}


def test_every_reason_of_the_controller_is_explained() -> None:
    sources = "".join(inspect.getsource(module) for module in (deadlines, handover, reading))
    used = set(re.findall(r'"([A-Z_]+): ', sources))
    assert {*used, settle.RESTORED} <= rows("In executions").keys()
