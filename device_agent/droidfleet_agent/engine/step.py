"""What one running step works with: its deadline, its counters, and the two ways to the phone, looking and acting.

`StepRun._act` is the only place in the engine where the phone is told to do something, so the rule of one effect
(protocol section 3, rule 5) stands here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from droidfleet_agent.driver.port import ActionRefusedError, Key, OutcomeUnknownError, Phone, PhoneUnavailableError
from droidfleet_agent.engine.control import RunControl, RunObserver
from droidfleet_agent.engine.ending import StepFailed, text_artifact
from droidfleet_agent.engine.look import take_look
from droidfleet_agent.engine.messages import sentence
from droidfleet_agent.screen.matching import Matcher
from droidfleet_agent.screen.parse import ScreenUnreadableError
from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import OutputValue, TargetModel
from droidfleet_shared.protocol.steps import StepBase

RETRY_PAUSE_S = 0.1
"""After an action that certainly did not happen, before the next look: time for a stale screen to settle."""

ACTION_RESERVE_S = 0.25
ACTION_RESERVE_SHARE = 0.2
"""An action is not begun with less time left than this (the smaller of the two; share of the step's timeout): a tap
takes 30 to 150 ms on a real phone, and our own deadline cutting its answer off would make its outcome unknown."""


class StepRun:
    """One step while it runs."""

    def __init__(
        self,
        step: StepBase,
        *,
        path: str,
        phone: Phone,
        clock: Clock,
        deadline: Deadline,
        observer: RunObserver,
        control: RunControl,
        outputs: dict[str, OutputValue],
    ) -> None:
        self.step = step
        self.path = path
        self._phone = phone
        self.deadline = deadline
        self.limit_ms = round(deadline.remaining() * 1000)
        """The step's `timeoutMs`, or what the task's own bound left of it."""
        self.outputs = outputs
        self.looks = 0
        self.dispatched = 0
        self.target: TargetModel | None = None
        self.last_look: Matcher | None = None
        self.deciding_look: Matcher | None = None
        """The last look before the first action; what `redo` compares later looks with."""
        self._clock = clock
        self._observer = observer
        self._control = control
        self._announced = 0

    async def look(self) -> Matcher:
        """A fresh snapshot.

        Raises:
            PhoneUnavailableError: no answer; by the deadline at the latest.
            StepFailed: the dump cannot be read, twice in a row.
            RunCancelled.
        """
        try:
            async with self._control.interruptible():
                matcher = await take_look(
                    self._phone, deadline=self.deadline, with_activity=self.step.activity_name is not None
                )
        except ScreenUnreadableError as error:
            raise StepFailed(
                StepCode.SCREEN_UNREADABLE,
                f"Two dumps in a row could not be read: {error.message} The raw text is kept as an artifact.",
                artifacts=[text_artifact("hierarchy.xml", "application/xml", error.raw)],
            ) from error
        self.looks += 1
        self.last_look = matcher
        if not self._announced:
            self.deciding_look = matcher
        return matcher

    async def keyboard_shown(self) -> bool:
        """Whether the phone says that its keyboard is shown.

        Raises:
            PhoneUnavailableError, RunCancelled.
        """
        async with self._control.interruptible():
            return await self._phone.keyboard_shown(deadline=self.deadline)

    async def pause(self, seconds: float) -> None:
        """Waits, no longer than to the deadline.

        Raises:
            RunCancelled.
        """
        async with self._control.interruptible():
            await self._clock.sleep(min(seconds, self.deadline.remaining()))

    # Actions. True: done. False: it certainly did not happen; after a short pause, so the caller looks again at once.
    # Each raises StepFailed when the phone said no, when nobody knows whether it happened, and when no time is left,
    # and RunCancelled before anything was sent.

    async def tap(self, point: tuple[int, int]) -> bool:
        """Taps at a point of the last look."""
        x, y = point
        return await self._act(f"tap at ({x}, {y})", lambda: self._phone.tap(x, y, deadline=self.deadline))

    async def press(self, key: Key) -> bool:
        """Presses a key once."""
        return await self._act(f"{key} key", lambda: self._phone.press(key, deadline=self.deadline))

    async def set_focused_text(self, text: str) -> bool:
        """Replaces the text of the field that has the focus."""
        return await self._act("text", lambda: self._phone.set_focused_text(text, deadline=self.deadline))

    async def hide_keyboard(self) -> bool:
        """Hides the keyboard, never leaving the page."""
        return await self._act("key that hides the keyboard", lambda: self._phone.hide_keyboard(deadline=self.deadline))

    async def _act(self, what: str, action: Callable[[], Awaitable[bool]]) -> bool:
        """Sends ``action`` once, after the observer has written down that it will be; ``what`` is words for people.

        Raises:
            StepFailed: the phone said no, nobody knows whether it happened, or no time is left.
            RunCancelled: before anything was sent.
        """
        self._control.check()
        if self._too_late_to_act:
            raise StepFailed(
                StepCode.ACTION_FAILED,
                f"Too little of the step's {self.limit_ms} ms was left for the {what}, so it was not sent. "
                "Raise `timeoutMs`.",
                out_of_time=True,
            )
        self._announced += 1
        await self._observer.dispatching(self.step.id, self.path, self._announced)
        self._control.check()  # writing it down took a moment
        self.dispatched += 1
        try:
            done = await action()
        except OutcomeUnknownError as error:
            raise StepFailed(
                StepCode.OUTCOME_UNKNOWN,
                f"Nobody knows whether the {what} happened: {sentence(error.message)} It is not repeated; look at the "
                "phone before you run this again.",
            ) from error
        except PhoneUnavailableError as error:
            self.dispatched -= 1
            return await self._again(StepCode.DEVICE_UNAVAILABLE, f"The {what} was not sent: {sentence(error.message)}")
        except ActionRefusedError as error:
            return await self._again(StepCode.ACTION_FAILED, f"The phone refused the {what}: {sentence(error.message)}")
        if not done:
            raise StepFailed(
                StepCode.ACTION_FAILED, f"The phone answered that it did not do the {what}. It is not repeated."
            )
        return True

    async def _again(self, code: StepCode, message: str) -> bool:
        await self.pause(RETRY_PAUSE_S)
        if self._too_late_to_act:
            raise StepFailed(
                code, f"{message} This went on until the deadline of {self.limit_ms} ms.", out_of_time=True
            )
        return False

    @property
    def _too_late_to_act(self) -> bool:
        reserve = min(ACTION_RESERVE_S, ACTION_RESERVE_SHARE * self.limit_ms / 1000)
        return self.deadline.remaining() < reserve
