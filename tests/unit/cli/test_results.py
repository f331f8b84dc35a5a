"""What comes of a run, on the command line: loops and trees readable, values shown, artifacts listed and saved."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import grpc
import pytest

from droidfleet.v1 import execution_pb2
from droidfleet_controller.cli.execution_view import depth
from droidfleet_controller.cli.tables import progress
from support.commandline import Command
from support.fake_controller import FakeFleet, Refusal, execution

PICTURE = b"\x89PNG and so on"
DIGEST = sha256(PICTURE).hexdigest()


def step(step_id: str, path: str, *, began: int, iteration: int = 0, action: str = "BACK") -> execution_pb2.StepResult:
    made = execution_pb2.StepResult(
        id=step_id, action=action, path=path, iteration=iteration, successful=True, code="OK"
    )
    made.started_at.FromMilliseconds(began)
    return made


def looped() -> execution_pb2.Execution:
    """A loop of two rounds, as it is reported: what ends first comes first."""
    steps = [
        step("next", "/steps/0/steps/0", began=1),
        step("next", "/steps/0/steps/0", began=2, iteration=1),
        step("loop", "/steps/0", began=1, action="REPEAT"),
        step("inner", "/steps/1/then/0", began=3),
        step("end", "/steps/1", began=3, action="IF"),
    ]
    result = execution_pb2.TaskResult(
        successful=True,
        code="OK",
        steps=steps,
        steps_omitted=600,
        random_seed=7,
        outputs_json='{"prices": ["3.50", null, "4.20"], "title": "Shop"}',
    )
    made = execution(steps_done=604, result=result)
    made.input_values_json = '{"item": "green tea", "pin": "[secret]"}'
    return made


def stored(name: str = "page", *, digest: str = DIGEST, available: bool = True) -> execution_pb2.StoredArtifact:
    artifact = execution_pb2.Artifact(name=name, media_type="image/png", sha256=digest, size_bytes=len(PICTURE))
    return execution_pb2.StoredArtifact(
        artifact=artifact, attempt=1, step_id="look", path="/steps/0", available=available
    )


def with_artifacts(fleet: FakeFleet, *items: execution_pb2.StoredArtifact) -> None:
    made = execution()
    made.artifacts.extend(items)
    fleet.executions = [made]
    fleet.artifacts = {DIGEST: [PICTURE[:4], PICTURE[4:]]}


def test_a_container_stands_above_what_it_ran_with_the_rounds(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [looped()]
    lines = droidfleet("execution", "show", "x").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("Step "))
    assert [line[:19].rstrip() for line in lines[start + 2 : start + 7]] == [
        "loop              R",
        "  next    1       B",
        "  next    2       B",
        "end               I",
        "  inner           B",
    ]
    assert any(line.startswith("600 more results") for line in lines)


def test_values_seed_and_outputs_are_shown(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [looped()]
    lines = [line.split(maxsplit=1) for line in droidfleet("execution", "show", "x").out.splitlines() if line.strip()]
    shown = {line[0]: line[1] for line in lines if len(line) == 2}
    assert (shown["item"], shown["pin"], shown["Seed"]) == ("green tea", "[secret]", "7")
    assert (shown["prices"], shown["title"]) == ('["3.50", null, "4.20"]', "Shop")


def test_the_document_has_what_is_shown(droidfleet: Command, fleet: FakeFleet) -> None:
    made = looped()
    made.artifacts.append(stored())
    fleet.executions = [made]
    document = json.loads(droidfleet("execution", "show", "x", "-o", "json").out)
    assert document["inputValues"] == {"item": "green tea", "pin": "[secret]"}
    assert document["result"]["stepsOmitted"] == 600
    assert document["result"]["outputs"]["prices"] == ["3.50", None, "4.20"]
    assert document["artifacts"][0] == {
        "name": "page",
        "mediaType": "image/png",
        "sha256": DIGEST,
        "sizeBytes": 14,
        "attempt": 1,
        "stepId": "look",
        "path": "/steps/0",
        "storedAt": None,
        "available": True,
    }


def test_what_failed_where_and_whether_it_acted_is_said(droidfleet: Command, fleet: FakeFleet) -> None:
    failed = execution_pb2.TaskResult(code="TARGET_NOT_FOUND", failed_screen="com.example.shop/.Basket", acted=False)
    made = execution(result=failed)
    made.priority, made.try_number = 9, 2
    fleet.executions = [made]
    assert "com.example.shop/.Basket" in droidfleet("execution", "show", "x").out
    document = json.loads(droidfleet("execution", "show", "x", "-o", "json").out)
    assert (document["priority"], document["tryNumber"], document["stoppedAt"]) == (9, 2, None)
    assert (document["result"]["failedScreen"], document["result"]["acted"]) == ("com.example.shop/.Basket", False)


def test_restarts_of_the_agent_are_said_where_there_were_any(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [execution(result=execution_pb2.TaskResult(code="OK", agent_restarts=2))]
    assert "Agent restarts  2" in droidfleet("execution", "show", "x").out
    document = json.loads(droidfleet("execution", "show", "x", "-o", "json").out)
    assert document["result"]["agentRestarts"] == 2
    fleet.executions = [execution(result=execution_pb2.TaskResult(code="OK"))]
    assert "Agent restarts" not in droidfleet("execution", "show", "x").out


def test_of_an_older_agent_it_is_not_known_whether_it_acted(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [looped()]
    assert json.loads(droidfleet("execution", "show", "x", "-o", "json").out)["result"]["acted"] is None


@pytest.mark.parametrize(
    ("done", "iteration", "shown"), [(3, 0, "3/4"), (4, 0, "4/4"), (57, 11, "57 (round 12)"), (604, 0, "604")]
)
def test_progress_says_the_round_where_steps_count_again(done: int, iteration: int, shown: str) -> None:
    item = execution(steps_done=done)
    item.iteration = iteration
    assert progress(item) == shown


@pytest.mark.parametrize(
    ("path", "levels"), [("/steps/0", 0), ("/steps/2/then/0", 1), ("/steps/2/else/0/steps/3", 2), ("", 0)]
)
def test_a_path_says_how_deep_a_step_is(path: str, levels: int) -> None:
    assert depth(path) == levels


def test_artifacts_are_listed(droidfleet: Command, fleet: FakeFleet) -> None:
    with_artifacts(fleet, stored(), stored("gone", available=False))
    rows = [line.split() for line in droidfleet("execution", "artifacts", "x").out.splitlines()[2:]]
    assert rows == [
        ["page", "look", "image/png", "0", "kB", DIGEST],
        ["gone", "look", "image/png", "made", "room", DIGEST],
    ]


def test_artifacts_are_saved_under_names_of_ours(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    with_artifacts(fleet, stored(), stored("../../escape"))
    ran = droidfleet("execution", "artifacts", "x", "--save", str(tmp_path / "out"))
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == ["001-look-page.png", "002-look-escape.png"]
    assert [file.read_bytes() for file in files] == [PICTURE, PICTURE]
    assert ran.out.splitlines() == [str(file) for file in files]


def test_programs_are_told_the_files(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    with_artifacts(fleet, stored())
    ran = droidfleet("execution", "artifacts", "x", "--save", str(tmp_path), "-o", "json")
    assert json.loads(ran.out)["artifacts"][0]["file"] == str(tmp_path / "001-look-page.png")
    ran = droidfleet("execution", "artifacts", "x", "-o", "json")
    assert json.loads(ran.out)["artifacts"][0]["file"] is None


def test_an_artifact_that_is_gone_is_said_and_exits_with_four(
    droidfleet: Command, fleet: FakeFleet, tmp_path: Path
) -> None:
    with_artifacts(fleet, stored(available=False))
    fleet.refusals["GetArtifact"] = Refusal(grpc.StatusCode.NOT_FOUND, "ARTIFACT_GONE", "not kept any more.")
    ran = droidfleet("execution", "artifacts", "x", "--save", str(tmp_path))
    assert (ran.code, ran.out) == (4, "")
    assert "page of step look: ARTIFACT_GONE" in ran.err


def test_what_arrives_broken_is_not_saved(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    with_artifacts(fleet, stored())
    fleet.artifacts = {DIGEST: [b"something else"]}
    ran = droidfleet("execution", "artifacts", "x", "--save", str(tmp_path / "out"))
    assert (ran.code, ran.err.split(":")[0]) == (3, "ARTIFACT_BROKEN")
    assert not (tmp_path / "out").exists()


def test_no_artifacts_are_said_to_be_none(droidfleet: Command, fleet: FakeFleet) -> None:
    with_artifacts(fleet)
    ran = droidfleet("execution", "artifacts", "x")
    assert (ran.code, ran.out, ran.err) == (0, "", "No artifacts.\n")
