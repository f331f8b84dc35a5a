"""Secrets never leave the engine: in no result, whatever step met them and however long they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.driver.memory import Fault, MemoryPhone, Page
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.messages import ELLIPSIS, MAX_LABEL, MAX_TEXT, quoted
from droidfleet_agent.engine.redact import redacted
from droidfleet_agent.engine.run import Engine
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import ArtifactModel, StepResult, TaskResult
from droidfleet_shared.protocol.validate import validate_task
from droidfleet_shared.secrets import HIDDEN, SHORTEST
from support.runs import AGENT, Recorder
from support.screens import dump, node, window
from support.shop import shop

Json = Mapping[str, object]

TYPE: Json = {"id": "t", "action": "INPUT", "selector": {"hint": "Search"}, "value": "${inputs.pin}"}
LONG = "correct horse battery staple, and more words than a label of a message may have"


async def run(
    phone: MemoryPhone, clock: VirtualClock, secret: str, *steps: Json, observer: Recorder | None = None
) -> tuple[TaskResult, Recorder]:
    document = {
        "schemaVersion": 1,
        "taskId": "t",
        "assignedAgentName": AGENT,
        "inputs": {"pin": {"type": "secret"}},
        "inputValues": {"pin": secret},
        "steps": list(steps),
    }
    observer = observer or Recorder()
    task = validate_task(json.dumps(document)).require()
    result = await Engine(phone, clock=clock).run(
        task, execution_id="e", agent_name=AGENT, observer=observer, control=RunControl()
    )
    return result, observer


def everything(result: TaskResult, observer: Recorder) -> str:
    return result.model_dump_json() + "".join(each.model_dump_json() for each in observer.finished)


def showing(clock: VirtualClock, text: str) -> MemoryPhone:
    """A phone that shows a text, and others below it."""
    others = [node(f"filler {place}", (0, 100 * place, 900, 100 * place + 90)) for place in range(1, 9)]
    page = Page(dump(window(node(text, (0, 0, 900, 90), resource_id="told"), *others)))
    return shop(clock, start="told", more={"told": page})


@pytest.mark.parametrize(
    "secret", ["hunter2", LONG, 'quo"ted \\ back', "line\nbreak", "a&b<c>", "四字密码", "pass😀word"]
)
@pytest.mark.parametrize(
    "step",
    [
        {"id": "r", "action": "EXTRACT_TEXT", "selector": {"resourceId": "told"}, "outputField": "code"},
        {"id": "c", "action": "CLICK", "selector": {"text": "Never"}, "timeoutMs": 100},
        {"id": "c", "action": "CLICK", "selector": {"resourceId": "told"}},
        {"id": "a", "action": "ASSERT", "condition": {"visible": {"text": "Never"}}, "timeoutMs": 100},
    ],
    ids=["an output", "a message", "a target", "a condition"],
)
async def test_a_secret_that_the_screen_shows_is_in_no_result(clock: VirtualClock, secret: str, step: Json) -> None:
    result, observer = await run(showing(clock, secret), clock, secret, step)
    said = everything(result, observer)
    assert secret not in said
    assert json.dumps(secret, ensure_ascii=False)[1:-1] not in said
    assert secret[: MAX_LABEL // 2] not in said
    assert "pass..word" not in said  # emoji, as a dump shows them
    assert HIDDEN in said


async def test_an_output_named_like_a_field_of_results_is_redacted_too(clock: VirtualClock) -> None:
    steps = [
        {"id": name, "action": "EXTRACT_TEXT", "selector": {"resourceId": "told"}, "outputField": name}
        for name in ("code", "path", "id", "outputs")
    ]
    result, _ = await run(showing(clock, "my hunter2!"), clock, "hunter2", *steps)
    assert set(result.outputs.values()) == {f"my {HIDDEN}!"}


async def test_values_of_lists_are_redacted(clock: VirtualClock) -> None:
    read = {"id": "r", "action": "EXTRACT_TEXT", "selector": {"resourceId": "told"}, "outputField": "x", "append": True}
    result, _ = await run(showing(clock, "hunter2"), clock, "hunter2", read)
    assert result.outputs == {"x": [HIDDEN]}


async def test_a_later_step_can_use_what_the_result_does_not_show(clock: VirtualClock) -> None:
    read = {"id": "r", "action": "EXTRACT_TEXT", "selector": {"resourceId": "told"}, "outputField": "x"}
    check = {"id": "a", "action": "ASSERT", "condition": {"output": "x", "equals": "hunter2"}}
    assert (await run(showing(clock, "hunter2"), clock, "hunter2", read, check))[0].successful


class Keeper(Recorder):
    """Keeps what is handed over beside the results."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    async def artifact(self, artifact: ArtifactModel, data: bytes) -> None:
        self.names.append(artifact.name)


async def test_an_artifact_that_is_named_after_it_is_handed_over_without_it(clock: VirtualClock) -> None:
    read = {"id": "r", "action": "EXTRACT_TEXT", "selector": {"resourceId": "told"}, "outputField": "x"}
    picture = {"id": "p", "action": "SCREENSHOT", "name": "of ${outputs.x}"}
    keeper = Keeper()
    await run(showing(clock, "hunter2"), clock, "hunter2", read, picture, observer=keeper)
    assert keeper.names == [f"of {HIDDEN}"]


async def test_a_raw_dump_that_is_kept_does_not_show_it(clock: VirtualClock) -> None:
    phone = showing(clock, "a&b<c>")
    phone.fail("dump", Fault.CUT, Fault.CUT)
    result, observer = await run(phone, clock, "a&b<c>", {"id": "w", "action": "WAIT", "selector": {"text": "x"}})
    assert result.code is StepCode.SCREEN_UNREADABLE
    [artifact] = result.steps[0].artifacts
    assert artifact.inline is not None
    assert HIDDEN in artifact.inline
    assert "a&amp;b" not in everything(result, observer)


async def test_a_text_that_is_cut_within_a_secret_does_not_show_its_beginning(clock: VirtualClock) -> None:
    told = "x" * (MAX_TEXT - 10)
    step = {"id": "c", "action": "CLICK", "selector": {"resourceId": "told"}}
    result, _ = await run(showing(clock, told + LONG), clock, LONG, step)
    assert result.steps[0].target is not None
    assert result.steps[0].target.text == told + HIDDEN


@pytest.mark.parametrize("secret", ["7", "042", "hunter2"])
async def test_a_typed_secret_of_any_length_is_not_quoted(clock: VirtualClock, secret: str) -> None:
    """The field loses a character, so what it shows is nearly the secret."""
    phone = shop(clock, typist=lambda text: f"x{text[1:]}")
    result, observer = await run(phone, clock, secret, TYPE)
    assert result.code is StepCode.ACTION_FAILED
    shows = "x" + secret[1:]
    assert f'"{shows}"' not in result.message
    assert f'"{HIDDEN}"' in result.message
    assert result.steps[0].target is not None
    assert result.steps[0].target.text == HIDDEN
    assert shows not in {each.text for step in observer.finished for each in step.candidates}


async def test_the_words_of_the_author_stay_in_the_message(clock: VirtualClock) -> None:
    step = {**TYPE, "selector": {"hint": "Nowhere"}, "timeoutMs": 100}
    result, _ = await run(shop(clock), clock, "042", step)
    assert '{"hint": "Nowhere"}' in result.message
    assert '"Shop"' not in result.message


async def test_a_short_secret_is_not_looked_for_where_it_was_not_typed(clock: VirtualClock) -> None:
    result, _ = await run(
        showing(clock, "Room 7"), clock, "7", {"id": "s7", "action": "CLICK", "selector": {"text": "Room 7"}}
    )
    assert result.steps[0].target is not None
    assert result.steps[0].target.text == "Room 7"


async def test_names_and_codes_are_never_redacted(clock: VirtualClock) -> None:
    step = {"id": "steps", "action": "CLICK", "selector": {"text": "Never"}, "timeoutMs": 100}
    result, _ = await run(showing(clock, "x"), clock, "steps", step)
    assert (result.failed_step_id, result.steps[0].id, result.steps[0].path) == ("steps", "steps", "/steps/0")


def test_a_task_without_secrets_is_reported_as_it_is() -> None:
    task = TaskResult(
        task_id="t", revision=1, agent_name="a", execution_id="e", successful=True, code=StepCode.OK,
        started_at=datetime(2026, 1, 1, tzinfo=UTC), duration_ms=1,
    )  # fmt: skip
    assert redacted(task, ()) is task


@given(
    secret=st.text(st.sampled_from('ab"\\é𝕡\n '), min_size=SHORTEST, max_size=MAX_TEXT + 50),
    around=st.tuples(st.text(st.sampled_from("xy "), max_size=60), st.text(st.sampled_from("xy "), max_size=60)),
)
def test_no_part_of_a_secret_longer_than_a_few_characters_is_left(secret: str, around: tuple[str, str]) -> None:
    text = around[0] + secret + around[1]
    step = StepResult(
        id="s", action="CLICK", path="/steps/0", successful=False, code=StepCode.TARGET_NOT_FOUND,
        message=f"On the screen: {quoted(text)}.", started_at=datetime(2026, 1, 1, tzinfo=UTC), duration_ms=1, looks=1,
        dispatched=0,
    )  # fmt: skip
    said = redacted(step, (secret,)).message
    assert secret not in said
    shown = said.removeprefix("On the screen: ")
    if ELLIPSIS in shown and len(around[0]) + SHORTEST < MAX_LABEL:
        before_cut = shown.partition(ELLIPSIS)[0]
        assert not before_cut.endswith(json.dumps(secret[: MAX_LABEL - 1 - len(around[0])], ensure_ascii=False)[1:-1])
