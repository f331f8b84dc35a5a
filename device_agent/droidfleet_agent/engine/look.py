"""One look: a single snapshot on which package, activity and target are all decided. Reads only."""

from __future__ import annotations

from droidfleet_agent.driver.port import Phone
from droidfleet_shared.clock import Deadline
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Node, Screen
from droidfleet_shared.screen.parse import Hierarchy, ScreenUnreadableError, parse
from droidfleet_shared.screen.windows import choose, is_application, rotated_display, windows_over


async def take_look(phone: Phone, *, deadline: Deadline, with_activity: bool) -> Matcher:
    """Dumps the screen and chooses its active window.

    When the dump holds several windows that could be in front, the snapshot is a second dump of the active one alone.
    ``with_activity`` adds two reads of the focus, before and after the dump: only when they agree is the activity of
    the snapshot known, else it is empty.

    Raises:
        PhoneUnavailableError: the phone did not answer by the deadline.
        ScreenUnreadableError: two dumps in a row could not be read.
    """
    size = await phone.display(deadline=deadline)
    keyboards = await phone.input_methods(deadline=deadline)
    before = await phone.focus(deadline=deadline) if with_activity else None
    dumped = await _dump(phone, deadline=deadline, active_only=False)
    windows = choose(
        dumped.roots, input_methods=keyboards, display=rotated_display(size.width, size.height, dumped.rotation)
    )
    front: Node | None = windows.contenders[0] if windows.contenders else None
    # The package of a keyboard may have an app of its own (voice input comes with a search app): with no other window
    # below, the active one of them is an app's, for a keyboard is never alone.
    of_keyboard = front is None and windows.keyboard is not None
    if of_keyboard or not windows.decided:
        dumped = await _dump(phone, deadline=deadline, active_only=True)
        # More than one: the phone did not understand what was asked, and none of them is guessed.
        front = dumped.roots[0] if len(dumped.roots) == 1 else None
    others = frozenset[str]() if of_keyboard else keyboards
    activity = ""
    if before is not None:
        after = await phone.focus(deadline=deadline)
        activity = after.activity if after == before else ""
    return Matcher(
        Screen(
            root=front if front is not None and is_application(front, input_methods=others) else None,
            package=front.package if front is not None else "",
            activity=activity,
            display=rotated_display(size.width, size.height, dumped.rotation),
            rotation=dumped.rotation,
            keyboard=windows.keyboard,
            over=windows_over(front, windows.contenders) if front is not None else (),
        )
    )


async def _dump(phone: Phone, *, deadline: Deadline, active_only: bool) -> Hierarchy:
    """A readable dump; a cut one is taken once more, since the next is nearly always whole."""
    try:
        return parse(await phone.dump(deadline=deadline, active_only=active_only))
    except ScreenUnreadableError:
        return parse(await phone.dump(deadline=deadline, active_only=active_only))
