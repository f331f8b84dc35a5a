"""What the controller reads off a document."""

from __future__ import annotations

import json

from droidfleet_controller.tasks.documents import LONGEST_RUN_S, check_template

BACK = {"id": "back", "action": "BACK"}


def bound_s(*steps: object) -> float:
    return check_template(json.dumps({"schemaVersion": 1, "taskId": "t", "steps": steps})).bound_s


def test_the_bound_counts_the_steps_of_every_round() -> None:
    assert bound_s({"id": "r", "action": "REPEAT", "maxIterations": 20, "steps": [BACK]}) == 103


def test_a_bound_beyond_every_calendar_is_cut() -> None:
    step: object = {"id": "d", "action": "DELAY", "minMs": 600_000}
    for level in range(4):
        step = {"id": f"r{level}", "action": "REPEAT", "maxIterations": 1_000, "steps": [step]}
    assert bound_s(step) == LONGEST_RUN_S
