"""Documents: what they list, how large they get, and the text in them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.window import MAX_RECEIPTS, Body, Document, Listed, address, choose
from droidfleet_shared.bus.messages import MAX_MESSAGE_BYTES, WINDOW, DesiredState, ExecutionRef, Wanted
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES, MAX_REVISION
from droidfleet_shared.protocol.validate import validate_task, validate_template
from support.controller import document
from unit.controller.builders import EXPIRES, NOW, execution


def listed(number: int, text: str = "{}", **fields: object) -> Listed:
    return Listed(execution(execution_id=f"x-{number}", **fields), Body.of(text))  # type: ignore[arg-type]  # builder


def test_the_window_takes_the_first_few_and_leaves_the_rest() -> None:
    assert choose([], [listed(number) for number in range(10)], receipts=0) == WINDOW
    assert choose([listed(0)], [listed(number) for number in range(1, 10)], receipts=0) == WINDOW - 1
    assert choose([listed(number) for number in range(WINDOW)], [listed(9)], receipts=0) == 0


def test_large_texts_narrow_the_window() -> None:
    large = "x" * (400 * 1024)
    assert choose([], [listed(number, large) for number in range(4)], receipts=0) == 2


@pytest.mark.parametrize("name", ["p", "🙂" * 128])
def test_a_template_of_the_largest_size_is_valid_for_every_agent(name: str) -> None:
    text = document()
    largest = text[:1] + " " * (MAX_DOCUMENT_BYTES - len(text)) + text[1:]
    assert validate_template(largest).errors == ()
    addressed = address(largest, agent=name, revision=MAX_REVISION)
    assert validate_task(addressed).errors == ()


def test_an_empty_window_always_takes_one() -> None:
    assert choose([], [listed(0, "x" * 2_000_000)], receipts=MAX_RECEIPTS) == 1


@given(
    sizes=st.lists(st.integers(1, MAX_DOCUMENT_BYTES), min_size=1, max_size=WINDOW),
    character=st.sampled_from(["x", '"', "\\", "é", "🙂"]),
    receipts=st.integers(0, 200),
)
def test_a_document_always_fits_into_a_message(sizes: list[int], character: str, receipts: int) -> None:
    width = len(character.encode())
    waiting = [listed(number, "{" + character * (size // width)) for number, size in enumerate(sizes)]
    count = choose([], waiting, receipts=receipts)
    carried = tuple(
        ExecutionRef(execution_id=f"x-{number:016}", attempt=1) for number in range(min(receipts, MAX_RECEIPTS))
    )
    text = Document("phone-01", 1, tuple(waiting[:count]), carried).encode(NOW)
    assert len(text) <= MAX_MESSAGE_BYTES


def test_the_document_says_what_is_wanted_in_order() -> None:
    entries = (listed(1, document()), listed(2, document(), cancel_requested=True))
    receipt = ExecutionRef(execution_id="x-0", attempt=1)
    made = DesiredState.decode(Document("phone-01", 7, entries, (receipt,)).encode(NOW))
    assert (made.agent, made.generation, made.recorded) == ("phone-01", 7, (receipt,))
    assert [(each.execution_id, each.wanted) for each in made.executions] == [
        ("x-1", Wanted.RUN),
        ("x-2", Wanted.CANCEL),
    ]


@pytest.mark.parametrize(
    ("reason", "told"),
    [("CANCEL_REQUESTED: wrong price", "wrong price"), ("CANCEL_REQUESTED", ""), ("LATE: too slow", "LATE: too slow")],
)
def test_the_agent_is_told_why_it_shall_cancel(reason: str, told: str) -> None:
    entry = listed(1, document(), cancel_requested=True)
    entry = replace(entry, execution=replace(entry.execution, reason=reason))
    made = DesiredState.decode(Document("phone-01", 7, (entry,), ()).encode(NOW))
    assert made.executions[0].reason == told


def test_reasons_of_cancels_that_came_later_fit_as_well() -> None:
    waiting = [listed(number, "{" + "x" * (MAX_DOCUMENT_BYTES - 1), cancel_requested=True) for number in range(WINDOW)]
    chosen = waiting[: choose([], waiting, receipts=MAX_RECEIPTS)]
    cancelled = tuple(replace(entry, execution=replace(entry.execution, reason="\x01" * 2_000)) for entry in chosen)
    assert len(Document("phone-01", 1, cancelled, ()).encode(NOW)) <= MAX_MESSAGE_BYTES


def test_the_time_to_start_is_counted_from_the_publication_and_never_negative() -> None:
    entry = Document("phone-01", 1, (listed(1, document()),), ())
    early = DesiredState.decode(entry.encode(EXPIRES - timedelta(seconds=90)))
    late = DesiredState.decode(entry.encode(EXPIRES + timedelta(days=1)))
    assert early.executions[0].start_within_s == 90
    assert late.executions[0].start_within_s == 0


def test_one_that_should_have_been_taken_on_has_no_time_left_to_start() -> None:
    entry = listed(1, document())
    late = replace(entry, execution=replace(entry.execution, accept_within_s=60))
    taken_on = replace(late, execution=replace(late.execution, state=ExecutionState.ACCEPTED))
    made = Document("phone-01", 1, (late, taken_on), ()).encode(NOW + timedelta(seconds=60))
    waiting, accepted = DesiredState.decode(made).executions
    assert (waiting.start_within_s, accepted.start_within_s) == (0, 3_540)


def test_a_template_becomes_a_valid_task_of_its_agent() -> None:
    text = address(document(), agent='a "quoted" näme', revision=3)
    task = validate_task(text).require()
    assert (task.assigned_agent_name, task.revision) == ('a "quoted" näme', 3)


def test_addressing_changes_nothing_else_of_the_text() -> None:
    text = ' \n{ "schemaVersion": 1, "taskId": "tea", "steps": [ {"id": "a",   "action": "BACK"} ] }\n'
    addressed = address(text, agent="p", revision=None)
    assert addressed == text.replace("{", '{"assignedAgentName": "p", ', 1)
    assert json.loads(addressed) == json.loads(text) | {"assignedAgentName": "p"}


def test_a_text_that_bears_its_name_is_passed_on_as_it_is() -> None:
    entry = listed(1, document(agent="phone-01"), add_name=False)
    made = DesiredState.decode(Document("phone-01", 1, (entry,), ()).encode(NOW))
    assert made.executions[0].task == document(agent="phone-01")


def test_states_do_not_matter_for_what_a_document_says_of_an_execution() -> None:
    running = listed(1, document(), state=ExecutionState.RUNNING)
    assert DesiredState.decode(Document("p", 1, (running,), ()).encode(NOW)).executions[0].wanted is Wanted.RUN
