"""What happened, taken into the records: tries that ended, phones that joined or left."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from droidfleet_controller.dispatch.states import TERMINAL, ExecutionState
from droidfleet_controller.rollouts.amounts import duration_text
from droidfleet_controller.rollouts.planner import retries
from droidfleet_controller.rollouts.planner.book import Book
from droidfleet_controller.rollouts.planner.exchange import Joined, Left, TryEnded, Withdraw
from droidfleet_controller.rollouts.planner.retries import RetryBudget
from droidfleet_controller.rollouts.rollout import DRY_RUN_WAVE, Member, Movement, Rule, Signature
from droidfleet_controller.rollouts.spec import Offline
from droidfleet_controller.rollouts.states import FAILURES, MemberState, Outcome
from droidfleet_shared.protocol.codes import StepCode

LEFT_TARGET = "LEFT_TARGET: it does not belong to the target any more."


def try_ended(book: Book, change: TryEnded, budget: RetryBudget) -> None:
    """A try has ended, or, counted as silent so far, turned out to have ended otherwise."""
    member = _of(book, change)
    if member is None:
        return
    correction = member.state is not MemberState.STARTED
    if correction and (member.outcome is not Outcome.SILENT or change.state is ExecutionState.LOST):
        return
    book.moving()
    if member.outcome is Outcome.REMOVED:
        book.put(replace(member, state=MemberState.ENDED, ended_at=change.at))
        return
    outcome = _outcome(book, member, change)
    before = member.signature
    ended = replace(
        member,
        state=MemberState.ENDED,
        outcome=outcome,
        ended_at=max(change.at, member.ended_at or change.at),
        retry_at=None,
        reason=change.reason,
        signature=_signature(member, change, outcome, correction=correction),
    )
    if outcome in FAILURES and not book.stopping:
        ended = _retried(book, ended, change, budget)
    book.put(ended)
    book.remember_signature(before, ended.signature)
    _open_breaker(book, ended.signature, change)


def joined(book: Book, change: Joined) -> None:
    """A phone belongs to the target now: it enters the open wave, before the first one the last wave that was planned.
    One that has begun already is not run again."""
    known = book.member(change.device)
    if book.stopping or (known is not None and (known.outcome is not Outcome.REMOVED or known.tries)):
        return
    wave = book.rollout.wave
    if wave == DRY_RUN_WAVE:
        wave = max(number for number, size in enumerate(book.rollout.wave_sizes, 1) if size)
    place = book.last_place + 1 if known is None else known.place
    member = Member(device=change.device, place=place, wave=wave, values_id=change.values_id)
    book.put(member)
    book.line_up(member)
    book.note_movement(member, Movement.JOINED, "It belongs to the target now.")
    book.say(Rule.JOIN, f"{member.device} joined and enters wave {wave}.", wave=wave, device=member.device)


def left(book: Book, change: Left) -> None:
    """A phone belongs to the target no more: removed at once while it waits; what has begun is let go on, uncounted."""
    member = book.member(change.device)
    if member is None or member.state is MemberState.ENDED or member.outcome is Outcome.REMOVED:
        return
    if member.state is MemberState.STARTED:
        gone = replace(member, outcome=Outcome.REMOVED, reason=LEFT_TARGET)
        how = "what it was given is withdrawn unless it has begun, and is not counted"
        book.withdraws.append(
            Withdraw(device=member.device, execution_id=member.execution_id, reason=LEFT_TARGET, unless_begun=True)
        )
    else:
        gone = replace(
            member,
            state=MemberState.ENDED,
            outcome=Outcome.REMOVED,
            ended_at=change.at,
            retry_at=None,
            reason=LEFT_TARGET,
        )
        how = "it was waiting, and is removed"
    book.put(gone)
    book.note_movement(gone, Movement.LEFT, LEFT_TARGET)
    book.say(Rule.LEAVE, f"{gone.device} left the target: {how}.", wave=gone.wave, device=gone.device)


def _of(book: Book, change: TryEnded) -> Member | None:
    for member in (book.dry_run(), book.member(change.device)):
        if member is not None and member.device == change.device and member.execution_id == change.execution_id:
            return member if change.state in TERMINAL else None
    return None


def _outcome(book: Book, member: Member, change: TryEnded) -> Outcome:  # noqa: PLR0911  # one for each state
    match change.state:
        case ExecutionState.SUCCEEDED:
            return Outcome.SUCCEEDED
        case ExecutionState.FAILED:
            unknown = change.signature.code == StepCode.OUTCOME_UNKNOWN
            return Outcome.UNKNOWN if unknown else Outcome.FAILED
        case ExecutionState.TIMED_OUT:
            return Outcome.TIMED_OUT
        case ExecutionState.CANCELLED:
            return Outcome.CANCELLED
        case ExecutionState.REJECTED:
            return Outcome.REJECTED
        case ExecutionState.EXPIRED:
            # One that failed before is no phone that was never there.
            skipped = book.rollout.spec.offline is Offline.SKIP and member.tries == 1 and member.wave != DRY_RUN_WAVE
            return Outcome.SKIPPED if skipped else Outcome.EXPIRED
        case (
            ExecutionState.LOST
            | ExecutionState.QUEUED
            | ExecutionState.ASSIGNED
            | ExecutionState.ACCEPTED
            | ExecutionState.RUNNING
            | ExecutionState.PAUSED
        ):
            return Outcome.SILENT
        case _:
            assert_never(change.state)


def _signature(member: Member, change: TryEnded, outcome: Outcome, *, correction: bool) -> Signature | None:
    if outcome in FAILURES:
        return change.signature
    return None if correction else member.signature


def _retried(book: Book, ended: Member, change: TryEnded, budget: RetryBudget) -> Member:
    """The member as it is after a failure: to be tried again, or ended."""
    retry = book.rollout.spec.retry
    if retry.max_attempts == 1:
        return ended
    code = change.signature.code
    refusal = _refusal(book, ended, change, budget)
    if refusal is not None:
        book.say(
            Rule.NO_RETRY,
            f"{ended.device} failed with {change.signature} and is not tried again: {refusal}.",
            wave=ended.wave,
            device=ended.device,
            code=code,
            tries=ended.tries,
        )
        return ended
    rollout_id = book.rollout.rollout_id
    wait = retries.delay(retry, failed_try=ended.tries, rollout_id=rollout_id, device=ended.device)
    retry_at = change.at + wait
    budget.note(book.now, retries=1)
    book.say(
        Rule.RETRY,
        f"{ended.device} failed with {change.signature} on try {ended.tries} of {retry.max_attempts}, "
        f"and is tried again {duration_text(wait)} later.",
        wave=ended.wave,
        device=ended.device,
        code=code,
        tries=ended.tries,
        retry_at=retry_at.isoformat(),
    )
    return replace(ended, state=MemberState.RETRYING, ended_at=None, retry_at=retry_at)


def _refusal(book: Book, ended: Member, change: TryEnded, budget: RetryBudget) -> str | None:
    retry = book.rollout.spec.retry
    never = _never(book, change)
    if never is not None:
        return never
    if ended.tries >= retry.max_attempts:
        return f"it had its {retry.max_attempts} tries"
    phones = _phones(book, ended, change.signature)
    if change.signature in book.rollout.memory.open_breakers or (
        ended.wave != DRY_RUN_WAVE and phones >= retry.breaker
    ):
        return f"{phones} phones failed so, and {retry.breaker} are the limit"
    if not budget.allows(book.now):
        return (
            f"the retries of all rollouts in the last hour are used up ({budget.retries} of {budget.limit}, "
            f"with {budget.begun} begun)"
        )
    return None


def _never(book: Book, change: TryEnded) -> str | None:
    return retries.never_retried(
        book.rollout.spec.retry,
        state=change.state,
        code=change.signature.code,
        may_have_acted=change.may_have_acted,
        repeatable=book.rollout.subject.repeatable,
    )


def _phones(book: Book, ended: Member, signature: Signature) -> int:
    """On how many phones it failed so, this one included."""
    known = book.members[ended.place].signature
    return book.signatures[signature] + (0 if known == signature else 1)


def _open_breaker(book: Book, signature: Signature | None, change: TryEnded) -> None:
    """Ends the retries of a failure that has shown itself on enough phones."""
    retry = book.rollout.spec.retry
    memory = book.rollout.memory
    if (
        signature is None
        or book.stopping
        or retry.max_attempts == 1
        or signature in memory.open_breakers
        or book.signatures[signature] < retry.breaker
        or _never(book, change) is not None
    ):
        return
    book.rollout = replace(book.rollout, memory=replace(memory, open_breakers=memory.open_breakers | {signature}))
    ended = sorted(book.retrying[signature])
    for place in ended:
        book.put(replace(book.members[place], state=MemberState.ENDED, ended_at=book.now, retry_at=None))
    book.say(
        Rule.BREAKER,
        f"{book.signatures[signature]} phones failed with {signature}: it is not tried again, "
        f"and {len(ended)} that waited for another try end.",
        phones=book.signatures[signature],
        limit=retry.breaker,
        ended=len(ended),
        code=signature.code,
        step=signature.step_id,
        screen=signature.screen,
    )
