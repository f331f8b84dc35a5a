"""A task with values, a secret and a picture, from the command line to a virtual phone and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from droidfleet_demo.fleet import Fleet
from support.workplace import Workplace

pytestmark = pytest.mark.e2e

SECRET = "correct-horse-battery"
TASK = {
    "schemaVersion": 1,
    "taskId": "search-with-values",
    "inputs": {"query": {"type": "string"}, "rounds": {"type": "integer", "default": 1}, "code": {"type": "secret"}},
    "steps": [
        {"id": "front", "action": "OPEN", "packageName": "com.example.shop", "stopFirst": True},
        {"id": "open-search", "action": "CLICK", "selector": {"resourceId": "search_bar"}},
        {
            "id": "twice",
            "action": "REPEAT",
            "maxIterations": 2,
            "steps": [
                {
                    "id": "type",
                    "action": "INPUT",
                    "selector": {"resourceId": "search_src_text"},
                    "value": "${inputs.query} ${inputs.code}",
                }
            ],
        },
        {
            "id": "read",
            "action": "EXTRACT_TEXT",
            "selector": {"resourceId": "search_src_text"},
            "outputField": "typed",
        },
        {"id": "look", "action": "SCREENSHOT", "name": "../../search"},
        {"id": "leave", "action": "STOP_APP", "packageName": "com.example.shop"},
        {"id": "again", "action": "OPEN", "packageName": "com.example.shop"},
    ],
}


def with_secret(place: Workplace) -> Workplace:
    return replace(place, env={**place.env, "DROIDFLEET_SECRET_CODE": SECRET})


def test_values_reach_the_phone_and_a_secret_nothing_that_is_printed_or_written(
    fleet: Fleet, at_fleet: Workplace, tmp_path: Path
) -> None:
    place = with_secret(at_fleet)
    file = tmp_path / "task.json"
    file.write_text(json.dumps(TASK))
    given = ["--input", "query=tea", "--secret", "code", "--seed", "7"]
    ran = place.droidfleet("task", "run", str(file), "-d", fleet.phones[0].name, "--watch", "-o", "json", *given)
    assert ran.code == 0, ran
    [execution] = json.loads(ran.out)["executions"]
    assert execution["result"]["outputs"] == {"typed": "tea [secret]"}
    assert execution["result"]["randomSeed"] == 7
    shown = place.droidfleet("execution", "show", execution["executionId"])
    assert "tea [secret]" in shown.out
    saved = place.droidfleet("execution", "artifacts", execution["executionId"], "--save", str(tmp_path / "pictures"))
    [picture] = (tmp_path / "pictures").iterdir()
    assert saved.out == f"{picture}\n"
    assert picture.name.startswith("001-look-search.")
    events = place.droidfleet("events", "--execution", execution["executionId"], "-o", "json")
    assert "ArtifactStored" in events.out
    for said in (ran, shown, saved, events):
        assert SECRET not in said.out + said.err
    assert _files_with(place.folder, SECRET) == []


def _files_with(folder: Path, text: str) -> list[str]:
    """Files that hold the text: logs, database, artifacts. Left out: the broker's store, which keeps for a while what
    it deleted, and what the virtual phone writes of itself, where the text was really typed."""
    found = []
    for file in folder.rglob("*"):
        parts = file.relative_to(folder).parts
        left_out = "nats" in parts or "effects" in file.name
        if file.is_file() and not left_out and text.encode() in file.read_bytes():
            found.append(str(file))
    return found


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ([], "INVALID_TASK"),
        (["--input", "qeury=tea", "--secret", "code"], "INVALID_TASK"),
        (["--input", "rounds=x"], "BAD_INPUT"),
    ],
)
def test_values_that_do_not_fit_run_nothing(fleet: Fleet, at_fleet: Workplace, given: list[str], code: str) -> None:
    body = json.dumps({**TASK, "taskId": "no-values"}).encode()
    ran = with_secret(at_fleet).droidfleet("task", "run", "-", "-d", fleet.phones[0].name, *given, stdin=body)
    assert (ran.code, ran.err.partition(":")[0]) == (2, code), ran
    assert SECRET not in ran.err
    listed = at_fleet.droidfleet("execution", "list", "--task", "no-values", "-o", "json")
    assert json.loads(listed.out) == {"executions": []}
