"""What one running step works with: its deadline, its counters, and the two ways to the phone, looking and acting.

`StepRun._act` is the only place in the engine where the phone is told to do something, so the rule of one effect
(protocol section 3, rule 5) stands here and nowhere else.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from random import Random

from droidfleet_agent.driver.port import (
    ActionRefusedError,
    Key,
    OutcomeUnknownError,
    Phone,
    PhoneUnavailableError,
    ScreenState,
)
from droidfleet_agent.engine.control import RunControl, RunObserver
from droidfleet_agent.engine.ending import StepFailed, text_artifact
from droidfleet_agent.engine.hold import NOTICED_WITHIN_S, RunClock, hold
from droidfleet_agent.engine.look import take_look
from droidfleet_agent.engine.messages import sentence
from droidfleet_agent.engine.picture import fitting
from droidfleet_agent.engine.redact import redacted
from droidfleet_agent.engine.sight import Eyes, Needs
from droidfleet_agent.vision.port import UnreadablePictureError
from droidfleet_shared.artifacts import MAX_ARTIFACT_BYTES
from droidfleet_shared.clock import Deadline
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import ArtifactModel, OutputValue, TargetModel
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps import StepBase
from droidfleet_shared.protocol.steps.touching import DRAG_HOLD_MS
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.parse import ScreenUnreadableError
from droidfleet_shared.screen.same import same_picture, same_screen
from droidfleet_shared.screen.sights import is_visual

RETRY_PAUSE_S = 0.1
"""After an action that certainly did not happen, before the next look: time for a stale screen to settle."""

ACTION_RESERVE_S = 0.25
ACTION_RESERVE_SHARE = 0.2
"""An action is not begun with less time left than this (the smaller of the two; share of the step's timeout): a tap
takes 30 to 150 ms on a real phone, and our own deadline cutting its answer off would make its outcome unknown."""


@dataclass(frozen=True, slots=True)
class Wants:
    """What a look has to tell beside the tree, for the decision at hand."""

    activity: bool = False
    sight: Needs = Needs()  # noqa: RUF009 - frozen


class RepeatedNoMoreError(Exception):
    """The screen changed before an action was repeated: the first one had its effect after all."""


class StepRun:
    """One step while it runs.

    ``task_deadline`` is the task's own; ``random`` makes the step's random choices. ``secrets`` stand in no name of an
    artifact, which may be made of what a step read.
    """

    def __init__(
        self,
        step: StepBase,
        *,
        path: str,
        phone: Phone,
        clock: RunClock,
        task_deadline: Deadline,
        observer: RunObserver,
        control: RunControl,
        outputs: dict[str, OutputValue],
        eyes: Eyes,
        random: Random,
        secrets: Sequence[str],
    ) -> None:
        self.step = step
        self.path = path
        self._phone = phone
        self.task_deadline = task_deadline
        self.random = random
        self.wants = Wants()
        self.limit_ms = 0
        self.deadline = task_deadline
        self.outputs = outputs
        self.looks = 0
        self.dispatched = 0
        self.target: TargetModel | None = None
        self.last_look: Matcher | None = None
        self.deciding_look: Matcher | None = None
        """The last look before the first action; what `redo` compares later looks with."""
        self.changed = False
        """Whether a look since the first action differed from the deciding one. Only kept for steps with `redo`."""
        self._acted = False
        self._looks_since = 0
        self._repeating = False
        self._clock = clock
        self._observer = observer
        self._control = control
        self._announced = 0
        self._eyes = eyes
        self._secrets = secrets
        self.artifacts: list[ArtifactModel] = []
        self._looks_before = 0
        self.begin(step.timeout_ms)

    def begin(self, timeout_ms: int) -> None:
        """Starts the time of the step's next part: at most ``timeout_ms``, or what the task's bound leaves of it."""
        self.deadline = self.task_deadline.at_most(timeout_ms / 1000)
        self.limit_ms = round(self.deadline.remaining() * 1000)
        self.now_acting()

    def now_acting(self) -> None:
        """Marks where the looks of the action begin."""
        self._looks_before = self.looks

    @property
    def on_first_look(self) -> bool:
        """Whether the last look is the action's first."""
        return self.looks == self._looks_before + 1

    @property
    def unchanged(self) -> bool:
        """Whether the screen was seen since the first action, and never differed. Only of steps with `redo`."""
        return self._looks_since > 0 and not self.changed

    def repeat(self) -> None:
        """From here to the next action, `RepeatedNoMoreError` ends it as soon as a look shows any change."""
        self._repeating = True

    async def look(self) -> Matcher:
        """A fresh snapshot.

        Raises:
            PhoneUnavailableError: no answer; by the deadline at the latest.
            StepFailed: the dump cannot be read, twice in a row.
            RepeatedNoMoreError: the screen changed although nothing was repeated yet.
            RunCancelled.
        """
        try:
            async with self._interruptible():
                matcher = await take_look(self._phone, deadline=self.deadline, with_activity=self.wants.activity)
                if self.wants.sight:
                    screen = matcher.screen
                    sights = await self._eyes.see(
                        self._phone, self.wants.sight, display=screen.display, deadline=self.deadline
                    )
                    matcher = Matcher(screen, sights)
        except UnreadablePictureError as error:
            raise StepFailed(StepCode.ACTION_FAILED, f"{sentence(error.message)} {error.hint}".strip()) from error
        except ScreenUnreadableError as error:
            raise StepFailed(
                StepCode.SCREEN_UNREADABLE,
                f"Two dumps in a row could not be read: {error.message} The raw text is kept as an artifact.",
                artifacts=[text_artifact("hierarchy.xml", "application/xml", error.raw)],
            ) from error
        self.looks += 1
        self.last_look = matcher
        if not self._acted:
            self.deciding_look = matcher
        elif self.step.redo and not self.changed:
            self._looks_since += 1
            self.changed = not self._as_decided_on(matcher)
        if self._repeating and self.changed:
            raise RepeatedNoMoreError
        return matcher

    def _interruptible(self) -> AbstractAsyncContextManager[None]:
        """A wait or a read. The run may be left there until the step's first action is announced: from then on the
        journal has a step that began to act, and only its end says what became of it."""
        return self._control.interruptible(may_leave=self._announced == 0)

    def _as_decided_on(self, matcher: Matcher) -> bool:
        """Whether a look shows what the deciding one did. Where no tree holds the target, equal trees show nothing."""
        before = self.deciding_look
        if before is None or not same_screen(before.screen, matcher.screen):
            return False
        selector = getattr(self.step, "selector", None)
        on_picture = isinstance(selector, Selector) and is_visual(selector)
        return not on_picture or same_picture(before.sights, matcher.sights)

    async def keyboard_shown(self) -> bool:
        """Whether the phone says that its keyboard is shown.

        Raises:
            PhoneUnavailableError, RunCancelled.
        """
        async with self._interruptible():
            return await self._phone.keyboard_shown(deadline=self.deadline)

    async def screen_state(self) -> ScreenState:
        """Whether the display is on and locked.

        Raises:
            PhoneUnavailableError, RunCancelled.
        """
        async with self._interruptible():
            return await self._phone.screen_state(deadline=self.deadline)

    async def screenshot(self) -> bytes:
        """The screen as JPEG or PNG.

        Raises:
            PhoneUnavailableError, RunCancelled.
        """
        async with self._interruptible():
            return await self._phone.screenshot(deadline=self.deadline)

    async def keep_picture(self, name: str, picture: bytes, *, max_bytes: int = MAX_ARTIFACT_BYTES) -> None:
        """Keeps a picture beside the result, made small enough for one bus message.

        Raises:
            StepFailed: it cannot be made so small.
            RunCancelled.
        """
        async with self._interruptible():
            fit = await asyncio.to_thread(fitting, picture, max_bytes=max_bytes)
        if fit is None:
            raise StepFailed(StepCode.ACTION_FAILED, "The picture of the screen is too large to be kept.")
        artifact = ArtifactModel(
            name=name,
            media_type=fit.media_type,
            sha256=hashlib.sha256(fit.data).hexdigest(),
            size_bytes=len(fit.data),
            inline=None,
        )
        artifact = redacted(artifact, self._secrets)
        await self._observer.artifact(artifact, fit.data)
        self.artifacts.append(artifact)

    async def delay(self, seconds: float) -> bool:
        """Waits, whatever the step's own deadline is; False: the task's deadline came first.

        Raises:
            RunCancelled.
        """
        self.deadline = self.task_deadline
        in_time = seconds <= self.task_deadline.remaining()
        end = self.task_deadline.at_most(seconds)
        while not end.passed:
            async with self._interruptible():
                await self._clock.sleep(min(NOTICED_WITHIN_S, end.remaining()))
            await self._hold()
        return in_time

    async def pause(self, seconds: float) -> None:
        """Waits, no longer than to the deadline.

        Raises:
            RunCancelled.
        """
        async with self._interruptible():
            await self._clock.sleep(min(seconds, self.deadline.remaining()))
        await self._hold()

    async def _hold(self) -> None:
        """Where the run is to be held, and this step has announced nothing."""
        if self._announced == 0:
            await hold(self._clock, self._control, self._observer, step_id=self.step.id)

    # Actions. True: done. False: it certainly did not happen; after a short pause, so the caller looks again at once.
    # Each raises StepFailed when the phone said no, when nobody knows whether it happened, and when no time is left,
    # and RunCancelled before anything was sent.

    async def tap(self, point: tuple[int, int], *, hold_ms: int | None = None) -> bool:
        """Taps at a point of the last look, or presses for ``hold_ms``."""
        x, y = point
        what = f"tap at ({x}, {y})" if hold_ms is None else f"long press at ({x}, {y})"
        return await self._act(
            what, lambda: self._phone.tap(x, y, hold_ms=hold_ms, deadline=self.deadline), takes_ms=hold_ms or 0
        )

    async def swipe(self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, hold_ms: int = 0) -> bool:
        """Moves a finger between two points of the last look, and rests for ``hold_ms`` at its end."""
        return await self._act(
            f"swipe from {start} to {end}",
            lambda: self._phone.swipe(start, end, duration_ms=duration_ms, hold_ms=hold_ms, deadline=self.deadline),
            takes_ms=duration_ms + hold_ms,
        )

    async def drag(self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int) -> bool:
        """Holds what is at one point of the last look and moves it to another."""
        return await self._act(
            f"drag from {start} to {end}",
            lambda: self._phone.drag(start, end, duration_ms=duration_ms, deadline=self.deadline),
            takes_ms=DRAG_HOLD_MS + duration_ms,
        )

    async def start_app(self, package: str, activity: str | None) -> bool:
        """Asks for an app to come to the front."""
        return await self._act(
            f"start of {package}",
            lambda: self._phone.start_app(package, activity=activity, deadline=self.deadline),
            never_again=frozenset({"APP_NOT_FOUND"}),
        )

    async def stop_app(self, package: str) -> bool:
        """Stops an app."""
        return await self._act(f"stop of {package}", lambda: self._phone.stop_app(package, deadline=self.deadline))

    async def wake(self) -> bool:
        """Turns the display on."""
        return await self._act("waking of the display", lambda: self._phone.wake(deadline=self.deadline))

    async def dismiss_lock(self) -> bool:
        """Asks for the lock screen to go away."""
        return await self._act("dismissal of the lock screen", lambda: self._phone.dismiss_lock(deadline=self.deadline))

    async def press(self, key: Key) -> bool:
        """Presses a key once."""
        return await self._act(f"{key} key", lambda: self._phone.press(key, deadline=self.deadline))

    async def set_focused_text(self, text: str) -> bool:
        """Replaces the text of the field that has the focus."""
        return await self._act("text", lambda: self._phone.set_focused_text(text, deadline=self.deadline))

    async def hide_keyboard(self) -> bool:
        """Hides the keyboard, never leaving the page."""
        return await self._act(
            "key that hides the keyboard",
            lambda: self._phone.hide_keyboard(deadline=self.deadline),
            prepares=True,
        )

    async def _act(
        self,
        what: str,
        action: Callable[[], Awaitable[bool]],
        *,
        takes_ms: int = 0,
        never_again: frozenset[str] = frozenset(),
        prepares: bool = False,
    ) -> bool:
        """Sends ``action`` once, after the observer has written down that it will be; ``what`` is words for people.

        ``takes_ms``: how long the phone needs for it at least. ``never_again``: codes of refusals that will not change.
        ``prepares``: it is not the action itself, so what it changes is not that action's effect.

        Raises:
            StepFailed: the phone said no, nobody knows whether it happened, or no time is left.
            RunCancelled: before anything was sent.
        """
        self._control.check(may_leave=self._announced == 0)
        if self._too_late_to_act(takes_ms):
            raise StepFailed(
                StepCode.ACTION_FAILED,
                f"Too little of the step's {self.limit_ms} ms was left for the {what}, so it was not sent. "
                "Raise `timeoutMs`.",
                out_of_time=True,
            )
        self._announced += 1
        await self._observer.dispatching(self.step.id, self.path, self._announced)
        self._control.check(may_leave=False)  # writing it down took a moment
        self.dispatched += 1
        try:
            done = await action()
        except OutcomeUnknownError as error:
            self._acted, self._repeating = True, False
            raise StepFailed(
                StepCode.OUTCOME_UNKNOWN,
                f"Nobody knows whether the {what} happened: {sentence(error.message)} It is not repeated; look at the "
                "phone before you run this again.",
            ) from error
        except PhoneUnavailableError as error:
            self.dispatched -= 1
            failed = StepCode.DEVICE_UNAVAILABLE, f"The {what} was not sent: {sentence(error.message)}"
            return await self._again(*failed, takes_ms)
        except ActionRefusedError as error:
            if error.code in never_again:
                raise StepFailed(StepCode.ACTION_FAILED, f"{sentence(error.message)} {error.hint}".strip()) from error
            failed = StepCode.ACTION_FAILED, f"The phone refused the {what}: {sentence(error.message)}"
            return await self._again(*failed, takes_ms)
        if not prepares:
            self._acted, self._repeating = True, False
        if not done:
            raise StepFailed(
                StepCode.ACTION_FAILED, f"The phone answered that it did not do the {what}. It is not repeated."
            )
        return True

    async def _again(self, code: StepCode, message: str, takes_ms: int) -> bool:
        await self.pause(RETRY_PAUSE_S)
        if self._too_late_to_act(takes_ms):
            raise StepFailed(
                code, f"{message} This went on while there was time, within {self.limit_ms} ms.", out_of_time=True
            )
        return False

    def _too_late_to_act(self, takes_ms: int) -> bool:
        reserve = min(ACTION_RESERVE_S, ACTION_RESERVE_SHARE * self.limit_ms / 1000)
        return self.deadline.remaining() < reserve + takes_ms / 1000
