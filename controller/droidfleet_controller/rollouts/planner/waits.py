"""Why a rollout starts nothing more just now, and when time alone will change that."""

from __future__ import annotations

from datetime import datetime

from droidfleet_controller.rollouts.planner.book import Book
from droidfleet_controller.rollouts.rollout import Wait, Waiting
from droidfleet_controller.rollouts.states import RolloutState


def waits(book: Book) -> tuple[tuple[Waiting, ...], datetime | None]:
    """The waits, and when to look again if nothing happens before; None: never."""
    rollout = book.rollout
    match rollout.state:
        case RolloutState.RUNNING:
            return _running(book)
        case RolloutState.AWAITING_APPROVAL:
            first = Waiting(why=Wait.APPROVAL, sentence=f"Waits for a person: {rollout.reason}")
        case RolloutState.PAUSED:
            first = Waiting(why=Wait.PAUSED, sentence=f"Paused: {rollout.reason}")
        case RolloutState.CANCELLING:
            sentence = f"{book.live} executions have been asked to end and have not confirmed it."
            first = Waiting(why=Wait.CONFIRMATION, sentence=sentence)
        case _:
            return (), None
    return (first, *_results(book)), None


def _running(book: Book) -> tuple[tuple[Waiting, ...], datetime | None]:
    rollout = book.rollout
    found: list[Waiting] = [*_results(book)]
    looks: list[datetime] = []
    if book.live > book.leaving:
        looks.append(rollout.moved_at + rollout.spec.deadlines.progress)
    soak_until = rollout.memory.soak_until
    if soak_until is not None:
        found.append(Waiting(why=Wait.SOAK, sentence="The open wave is complete and soaks.", until=soak_until))
        looks.append(soak_until)
    ready = book.due_retry() is not None or book.first_waiting() is not None
    retry_at = book.next_retry_at()
    if retry_at is not None:
        sentence = "A phone waits for its next try."
        found.append(Waiting(why=Wait.RETRY_DELAY, sentence=sentence, until=retry_at))
    if ready or retry_at is not None:
        from_when = book.now if ready or retry_at is None else retry_at
        limits, look = _limits(book, from_when)
        found += limits if ready else ()
        looks += [] if look is None else [look]
    return tuple(found), min(looks, default=None)


def _results(book: Book) -> list[Waiting]:
    if not book.live or book.rollout.state is RolloutState.CANCELLING:
        return []
    return [Waiting(why=Wait.RESULTS, sentence=f"{book.live} executions have not ended.")]


def _limits(book: Book, at: datetime) -> tuple[list[Waiting], datetime | None]:
    """What holds back a start that is ready at ``at``, and when it may begin; None: not by time alone."""
    most = book.rollout.spec.max_concurrent
    if most is not None and book.live >= most:
        return [Waiting(why=Wait.CONCURRENCY, sentence=f"{most} executions may be live at a time.")], None
    found = []
    if book.pace.room(book.now, book.successes) == 0:
        free_at = book.pace.free_at()
        at = max(at, free_at)
        found.append(Waiting(why=Wait.RATE, sentence="The rate is used up for this minute.", until=free_at))
    if book.opening is None or book.opening.is_open(at):
        return found, at
    opens = book.opening.next_opening(at)
    if not book.opening.is_open(book.now):
        found.append(
            Waiting(why=Wait.WINDOW, sentence="The window is closed.", until=book.opening.next_opening(book.now))
        )
    return found, opens
