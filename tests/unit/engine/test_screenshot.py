"""SCREENSHOT: a picture beside the result, small enough for one message."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from random import Random

import pytest
from PIL import Image

from droidfleet_agent.driver.memory import SMALLEST_JPEG, Fault, MemoryPhone
from droidfleet_shared.artifacts import MAX_ARTIFACT_BYTES
from droidfleet_shared.clock import Deadline, VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import ArtifactModel
from support.cancels import cancelled_after
from support.runs import Recorder, run_step, run_steps
from support.screens import PACKAGE
from support.shop import pages, shop

SHOT = {"action": "SCREENSHOT", "name": "cart"}


class Keeper(Recorder):
    """Keeps what the run handed over."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[ArtifactModel, bytes]] = []

    async def artifact(self, artifact: ArtifactModel, data: bytes) -> None:
        self.kept.append((artifact, data))


class Camera(MemoryPhone):
    """Its screen looks like the given picture."""

    picture = SMALLEST_JPEG

    async def screenshot(self, *, deadline: Deadline) -> bytes:
        await super().screenshot(deadline=deadline)
        return self.picture


def camera(clock: VirtualClock, picture: bytes) -> Camera:
    phone = Camera(pages(), start="home", clock=clock)
    phone.picture = picture
    return phone


def noise(width: int, height: int) -> bytes:
    """A picture that no format makes small, as PNG."""
    buffer = io.BytesIO()
    Image.frombytes("RGB", (width, height), Random(0).randbytes(3 * width * height)).save(buffer, "PNG")
    return buffer.getvalue()


async def test_the_picture_is_handed_over_and_named_by_the_result(clock: VirtualClock) -> None:
    keeper = Keeper()
    result = await run_step(shop(clock), clock, SHOT, observer=keeper)
    assert (result.successful, result.detail) == (True, Detail.CAPTURED)
    ((artifact, data),) = keeper.kept
    assert result.artifacts == (artifact,)
    assert (artifact.name, artifact.media_type, artifact.inline) == ("cart", "image/jpeg", None)
    assert (artifact.sha256, artifact.size_bytes) == (hashlib.sha256(data).hexdigest(), len(data))
    assert data == SMALLEST_JPEG


async def test_it_takes_no_look_and_tells_the_phone_nothing(clock: VirtualClock) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, SHOT)
    assert (result.looks, result.dispatched, phone.calls) == (0, 0, ["screenshot"])


async def test_a_picture_that_fits_is_kept_as_the_phone_gave_it(clock: VirtualClock) -> None:
    picture, keeper = noise(100, 100), Keeper()
    await run_step(camera(clock, picture), clock, SHOT, observer=keeper)
    ((artifact, data),) = keeper.kept
    assert (data, artifact.media_type) == (picture, "image/png")


async def test_a_picture_that_does_not_fit_is_made_smaller(clock: VirtualClock) -> None:
    picture, keeper = noise(1080, 1200), Keeper()
    assert len(picture) > MAX_ARTIFACT_BYTES
    result = await run_step(camera(clock, picture), clock, SHOT, observer=keeper)
    ((artifact, data),) = keeper.kept
    assert result.successful
    assert artifact.media_type == "image/jpeg"
    assert artifact.size_bytes == len(data) <= MAX_ARTIFACT_BYTES
    assert artifact.sha256 == hashlib.sha256(data).hexdigest()
    with Image.open(io.BytesIO(data)) as kept:
        assert kept.width / kept.height == pytest.approx(1080 / 1200, abs=0.01)


async def test_what_is_too_large_and_no_picture_fails_and_nothing_is_handed_over(clock: VirtualClock) -> None:
    keeper = Keeper()
    result = await run_step(camera(clock, bytes(MAX_ARTIFACT_BYTES + 1)), clock, SHOT, observer=keeper)
    assert result.code is StepCode.ACTION_FAILED
    assert "too large to be kept" in result.message
    assert (keeper.kept, result.artifacts) == ([], ())


async def test_pictures_of_one_task_stay_with_their_steps(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, SHOT, {**SHOT, "name": "detail"})
    assert [[artifact.name for artifact in step.artifacts] for step in task.steps] == [["cart"], ["detail"]]


async def test_the_app_of_the_step_is_waited_for(clock: VirtualClock) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, {**SHOT, "packageName": PACKAGE})
    assert (result.detail, result.looks) == (Detail.CAPTURED, 1)


async def test_another_app_in_front_is_not_taken(clock: VirtualClock) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, {**SHOT, "packageName": "com.other", "timeoutMs": 1000})
    assert result.code is StepCode.PACKAGE_MISMATCH
    assert "screenshot" not in phone.calls
    assert clock.monotonic() == pytest.approx(1.0)


async def test_a_picture_is_only_a_read_and_so_is_asked_for_again(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("screenshot", Fault.DIES_BEFORE, Fault.DIES_AFTER)
    result = await run_step(phone, clock, SHOT)
    assert (result.detail, phone.calls) == (Detail.CAPTURED, ["screenshot"] * 3)


def hanging(phone: MemoryPhone) -> None:
    phone.fail("screenshot", Fault.HANG)


def away(phone: MemoryPhone) -> None:
    phone.fail("screenshot", *[Fault.DIES_BEFORE] * 100)


@pytest.mark.parametrize("becomes", [hanging, away])
async def test_a_phone_that_gives_no_picture_is_unavailable_at_the_deadline(
    clock: VirtualClock, becomes: Callable[[MemoryPhone], None]
) -> None:
    phone, keeper = shop(clock), Keeper()
    becomes(phone)
    result = await run_step(phone, clock, {**SHOT, "timeoutMs": 2000}, observer=keeper)
    assert result.code is StepCode.DEVICE_UNAVAILABLE
    assert result.message.startswith("After 2000 ms the phone had given no picture: ")
    assert keeper.kept == []
    assert clock.monotonic() == pytest.approx(2.0)


async def test_a_cancel_ends_the_wait_for_a_picture_at_once(clock: VirtualClock) -> None:
    task = await cancelled_after(1.0, shop(clock, latency={"screenshot": 4.0}), clock, SHOT)
    assert (task.code, task.steps[0].code, task.steps[0].artifacts) == (StepCode.CANCELLED, StepCode.CANCELLED, ())
    assert clock.monotonic() == pytest.approx(1.0)
