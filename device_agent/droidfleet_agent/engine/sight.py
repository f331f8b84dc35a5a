"""Sees for the looks of one task: which visual selectors a step holds, and what is seen of them on a picture.

Seeing takes up to seconds of one processor. It runs in the one thread of this process that is for it, so that a host
with many phones stays usable, and a step waits for it no longer than to its deadline.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from pydantic import BaseModel

from droidfleet_agent.driver.port import Phone, PhoneUnavailableError
from droidfleet_agent.vision.port import UnreadablePictureError, Vision
from droidfleet_shared.clock import Deadline
from droidfleet_shared.protocol.selector import ImageSelector, Selector
from droidfleet_shared.protocol.steps import StepBase
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.tree import walk
from droidfleet_shared.screen.node import Bounds
from droidfleet_shared.screen.sights import Sighting, Sights

T = TypeVar("T")

PICTURE_NOT_READ = "PICTURE_NOT_READ"
"""Code of the error when seeing took longer than there was time; the phone has answered."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What has to be looked for in a picture."""

    texts: bool = False
    images: frozenset[ImageSelector] = frozenset()

    def __bool__(self) -> bool:
        return self.texts or bool(self.images)


def needs_of(part: BaseModel, *, without: frozenset[str] = frozenset()) -> Needs:
    """What the selectors in a step, a condition or a selector need; the steps within a container are not its own.

    ``without``: fields of it that another look is for.
    """
    selectors = list(_selectors(part, without))
    return Needs(
        texts=any(each.ocr_text is not None for each in selectors),
        images=frozenset(each.image for each in selectors if each.image is not None),
    )


def needs_of_task(task: TaskTemplate) -> Needs:
    """What all steps of the task need together."""
    needs = [needs_of(step) for _path, step in walk(task.steps)]
    return Needs(any(each.texts for each in needs), frozenset().union(*(each.images for each in needs)))


def _selectors(part: BaseModel, without: frozenset[str] = frozenset()) -> Iterator[Selector]:
    if isinstance(part, Selector):
        yield part
    for name in type(part).model_fields.keys() - without:
        value = getattr(part, name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, BaseModel) and not isinstance(each, StepBase):
                yield from _selectors(each)


class Eyes:
    """Sight for one task. ``artifacts``: the task's pictures, by name in base64."""

    def __init__(self, vision: Callable[[], Vision], artifacts: Mapping[str, str]) -> None:
        self._vision = vision
        self._artifacts = artifacts

    async def see(self, phone: Phone, needs: Needs, *, display: Bounds, deadline: Deadline) -> Sights:
        """Takes a picture of the screen and looks for what is needed.

        Raises:
            PhoneUnavailableError: no picture, or not seen through by the deadline.
            UnreadablePictureError: a picture of the task cannot be looked for.
        """
        picture = await phone.screenshot(deadline=deadline)
        return await _in_thread(lambda: self._sights(picture, needs, display), deadline)

    def _sights(self, picture: bytes, needs: Needs, display: Bounds) -> Sights:
        vision = self._vision()
        size = vision.size(picture)
        # A picture may be smaller than the display: some phones give a scaled one.
        across = (display.right - display.left) / size.width
        down = (display.bottom - display.top) / size.height

        def on_display(seen: tuple[Sighting, ...]) -> tuple[Sighting, ...]:
            return tuple(Sighting(_scaled(each.bounds, across, down), each.score, each.text) for each in seen)

        images = {
            image: on_display(vision.find(picture, self._picture(image), threshold=image.threshold / 100))
            for image in needs.images
        }
        return Sights(on_display(vision.texts(picture)) if needs.texts else (), images)

    def _picture(self, image: ImageSelector) -> bytes:
        try:
            return base64.b64decode(self._artifacts[image.artifact])
        except (KeyError, ValueError) as error:  # the validator has looked; an artifact may still be damaged
            raise UnreadablePictureError(
                "UNREADABLE_PICTURE", f"the artifact {image.artifact!r} is no picture."
            ) from error


def _scaled(bounds: Bounds, across: float, down: float) -> Bounds:
    return Bounds(
        round(bounds.left * across),
        round(bounds.top * down),
        max(round(bounds.right * across), round(bounds.left * across) + 1),
        max(round(bounds.bottom * down), round(bounds.top * down) + 1),
    )


@lru_cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="vision")


async def _in_thread(work: Callable[[], T], deadline: Deadline) -> T:
    try:
        async with asyncio.timeout(max(0.0, deadline.remaining())):
            return await asyncio.get_running_loop().run_in_executor(_thread(), work)
    except TimeoutError as error:
        raise PhoneUnavailableError(
            PICTURE_NOT_READ,
            "the picture of the screen was not looked through in time; give the step more with `timeoutMs`.",
        ) from error
