"""What a step needs to see, and how a picture's findings come to the display's pixels."""

from __future__ import annotations

import base64
import threading

import pytest
from pydantic import TypeAdapter

from droidfleet_agent.driver.memory import MemoryPhone
from droidfleet_agent.driver.port import PhoneUnavailableError
from droidfleet_agent.engine.sight import Eyes, Needs, needs_of, needs_of_task
from droidfleet_agent.vision.port import PictureSize, UnreadablePictureError, Vision
from droidfleet_shared.clock import Clock, SystemClock, VirtualClock
from droidfleet_shared.protocol.selector import ImageSelector
from droidfleet_shared.protocol.steps import Step
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.screen.node import Bounds
from droidfleet_shared.screen.sights import Sighting
from support.shop import pages

STEPS: TypeAdapter[Step] = TypeAdapter(Step)
ICON = ImageSelector(artifact="icon")
DISPLAY = Bounds(0, 0, 1000, 2000)


class FakeVision(Vision):
    """Sees what it is told to."""

    def __init__(self, *texts: Sighting, size: PictureSize = PictureSize(1000, 2000)) -> None:  # noqa: B008 - frozen
        self._texts = texts
        self._size = size
        self.wanted: list[tuple[bytes, float]] = []
        self.readings = 0
        self.ready = threading.Event()
        self.ready.set()

    def size(self, picture: bytes) -> PictureSize:
        return self._size

    def texts(self, picture: bytes) -> tuple[Sighting, ...]:
        self.readings += 1
        self.ready.wait(10)
        return self._texts

    def find(self, picture: bytes, wanted: bytes, *, threshold: float) -> tuple[Sighting, ...]:
        self.wanted.append((wanted, threshold))
        return self._texts


def step(**fields: object) -> Step:
    return STEPS.validate_python({"id": "a", **fields})


def memory_phone(clock: Clock) -> MemoryPhone:
    return MemoryPhone(pages(), start="home", clock=clock)


@pytest.mark.parametrize(
    ("made", "needs"),
    [
        (step(action="CLICK", selector={"text": "Start"}), Needs()),
        (step(action="CLICK", selector={"ocrText": "Start"}), Needs(texts=True)),
        (step(action="CLICK", selector={"image": {"artifact": "icon"}}), Needs(images=frozenset({ICON}))),
        (step(action="CLICK", selector={"text": "Start"}, unlessVisible={"ocrText": "Level 1"}), Needs(texts=True)),
        (step(action="BACK", when={"any": [{"not": {"visible": {"ocrText": "Pause"}}}]}), Needs(texts=True)),
        (step(action="BACK", after={"condition": {"gone": {"ocrText": "Pause"}}}), Needs(texts=True)),
        (
            step(action="GROUP", steps=[{"id": "b", "action": "CLICK", "selector": {"ocrText": "Start"}}]),
            Needs(),
        ),
    ],
)
def test_a_step_needs_what_its_own_selectors_look_for(made: Step, needs: Needs) -> None:
    assert needs_of(made) == needs


def test_a_task_needs_vision_when_a_step_anywhere_in_it_does() -> None:
    def task(selector: dict[str, object]) -> TaskTemplate:
        inner = {"id": "b", "action": "CLICK", "selector": selector}
        condition = {"visible": {"text": "Later"}}
        steps = [
            {
                "id": "a",
                "action": "IF",
                "condition": condition,
                "then": [{"id": "c", "action": "BACK"}],
                "else": [inner],
            }
        ]
        return TaskTemplate.model_validate({"schemaVersion": 1, "taskId": "t", "steps": steps})

    assert needs_of_task(task({"ocrText": "Start"})) == Needs(texts=True)
    assert needs_of_task(task({"image": {"artifact": "icon"}})) == Needs(images=frozenset({ICON}))
    assert not needs_of_task(task({"text": "Start"}))


async def test_a_smaller_picture_is_told_in_the_displays_pixels() -> None:
    clock = SystemClock()
    vision = FakeVision(Sighting(Bounds(50, 100, 60, 110), 0.9, "Start"), size=PictureSize(500, 1000))
    eyes = Eyes(lambda: vision, {})

    sights = await eyes.see(memory_phone(clock), Needs(texts=True), display=DISPLAY, deadline=clock.deadline(5))

    assert [each.bounds for each in sights.texts] == [Bounds(100, 200, 120, 220)]


async def test_only_what_is_needed_is_looked_for() -> None:
    clock = SystemClock()
    vision = FakeVision()
    eyes = Eyes(lambda: vision, {"icon": base64.b64encode(b"picture").decode()})

    await eyes.see(memory_phone(clock), Needs(images=frozenset({ICON})), display=DISPLAY, deadline=clock.deadline(5))

    assert vision.readings == 0
    assert vision.wanted == [(b"picture", 0.9)]


async def test_a_picture_that_the_task_does_not_have_is_an_error_of_its_own() -> None:
    clock = SystemClock()
    eyes = Eyes(FakeVision, {})

    with pytest.raises(UnreadablePictureError, match="icon"):
        await eyes.see(
            memory_phone(clock), Needs(images=frozenset({ICON})), display=DISPLAY, deadline=clock.deadline(5)
        )


async def test_a_reading_that_takes_too_long_ends_at_the_deadline() -> None:
    vision = FakeVision()
    vision.ready.clear()
    clock = VirtualClock()
    eyes = Eyes(lambda: vision, {})

    with pytest.raises(PhoneUnavailableError, match="PICTURE_NOT_READ"):
        await eyes.see(memory_phone(clock), Needs(texts=True), display=DISPLAY, deadline=clock.deadline(0.05))
    vision.ready.set()
