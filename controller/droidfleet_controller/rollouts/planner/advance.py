"""From wave to wave: gates, soaking, approval, the deadline of progress, and how a rollout ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from droidfleet_controller.rollouts import waves
from droidfleet_controller.rollouts.amounts import duration_text
from droidfleet_controller.rollouts.planner.book import Book
from droidfleet_controller.rollouts.planner.exchange import Withdraw
from droidfleet_controller.rollouts.planner.gate import Excess, excess, verdict
from droidfleet_controller.rollouts.planner.sentences import phones
from droidfleet_controller.rollouts.rollout import ALL_CODES, DRY_RUN_WAVE, Rule
from droidfleet_controller.rollouts.spec import Approval, OnExceeded
from droidfleet_controller.rollouts.states import TERMINAL, MemberState, Outcome, ReasonCode, RolloutState

GATE_PAUSES = frozenset({ReasonCode.BELOW_THRESHOLD, ReasonCode.SAMPLE_TOO_SMALL, ReasonCode.DRY_RUN_FAILED})
"""Pauses out of which `promote` leads."""


def settle(book: Book) -> None:
    """Takes every step that follows from the records as they are, starts aside."""
    while _step(book):
        pass  # each step opens a wave or leaves a state for good, so there are few


def exceeded(book: Book, wave: int) -> Excess | None:
    """Whether an open wave has more failures than its gate bears and somebody has accepted."""
    if not DRY_RUN_WAVE < wave <= book.rollout.wave:
        return None
    acknowledged = book.rollout.memory.acknowledged.get(wave, {})
    return excess(book.gate(wave), book.tallies[wave], acknowledged)


def stop(book: Book, code: ReasonCode, reason: str) -> None:
    """Cancels: nothing new starts, what is live is withdrawn, the rest ends as cancelled. Looks at each member once."""
    book.move(RolloutState.CANCELLING, code, reason)
    withdrawn = end_all(book, reason=f"{code}: {reason}", fence=False, let_go=code is ReasonCode.MEMBERS_GONE)
    book.say(
        Rule.WITHDRAW,
        f"{withdrawn} executions are withdrawn, and nothing new starts.",
        withdrawn=withdrawn,
        reason_code=code.value,
    )


def end_all(book: Book, *, reason: str, fence: bool, let_go: bool = False) -> int:
    """Withdraws what is live and ends the rest; with ``fence`` everything ends. ``let_go``: what runs of members that
    left goes on. How many are withdrawn."""
    withdrawn = 0
    for member in list(book.members.values()):
        if member.state is MemberState.STARTED:
            if let_go and member.outcome is Outcome.REMOVED:
                continue
            withdrawn += 1
            book.withdraws.append(
                Withdraw(device=member.device, execution_id=member.execution_id, reason=reason, fence=fence)
            )
            if not fence:
                continue
        elif member.state is MemberState.ENDED:
            continue
        removed = member.outcome is Outcome.REMOVED
        book.put(
            replace(
                member,
                state=MemberState.ENDED,
                outcome=Outcome.REMOVED if removed else Outcome.CANCELLED,
                ended_at=book.now,
                retry_at=None,
                reason=member.reason if removed else reason,
            )
        )
    return withdrawn


def open_wave(book: Book, wave: int) -> None:
    """Opens a wave, from now on members of it start."""
    passed_over = range(book.rollout.wave + 1, wave)
    members = book.tallies[wave].counted
    book.rollout = replace(book.rollout, wave=wave, wave_opened_at=book.now)
    book.move(RolloutState.RUNNING)
    book.moving()
    book.remember_soak(None)
    left_out = "".join(f" Nobody waits in wave {number}: it is passed over." for number in passed_over)
    gate = waves.numbers(book.gate(wave), members).sentence
    book.say(Rule.OPEN_WAVE, f"Wave {wave} opens with {phones(members)}: {gate}.{left_out}", members=members)


def gate_reason(book: Book) -> ReasonCode:
    """Why the rollout may not go on from where it is; NONE: it may, or the open wave is not complete."""
    wave = book.rollout.wave
    dry_run = book.dry_run()
    if wave == DRY_RUN_WAVE:
        failed = dry_run is not None and dry_run.state is MemberState.ENDED and dry_run.outcome != Outcome.SUCCEEDED
        return ReasonCode.DRY_RUN_FAILED if failed else ReasonCode.NONE
    tally = book.tallies[wave]
    return verdict(book.gate(wave), tally) if tally.complete else ReasonCode.NONE


def _step(book: Book) -> bool:
    """One step; whether it may have made another one possible."""
    state = book.rollout.state
    if state in TERMINAL:
        return False
    if state is RolloutState.CANCELLING:
        if not book.live:
            book.move(RolloutState.CANCELLED, book.rollout.reason_code, book.rollout.reason)
            book.say(Rule.FINISH, "Everything that was started has ended: the rollout is cancelled.")
        return False
    if not book.remaining:
        stop(book, ReasonCode.MEMBERS_GONE, "all members left the target.")
        return True
    for wave in sorted(book.touched):
        book.touched.discard(wave)
        found = exceeded(book, wave)
        if found is not None and _act_on(book, wave, found):
            return True
    if not book.running:
        return False
    went_on = _before_first(book) if book.rollout.wave == DRY_RUN_WAVE else _wave(book)
    return went_on or _no_progress(book)


def _act_on(book: Book, wave: int, found: Excess) -> bool:
    rollout = book.rollout
    what = "failures" if found.code == ALL_CODES else found.code
    counted = book.tallies[wave].counted
    sentence = f"Wave {wave} has {found.failures} {what} of {counted} members; more than {found.limit} is too many"
    cancels = book.gate(wave).on_exceeded is OnExceeded.CANCEL
    paused = rollout.state is RolloutState.PAUSED
    if not cancels and paused and rollout.reason_code in GATE_PAUSES | {ReasonCode.TOO_MANY_FAILURES}:
        return False
    over = book.running and book.next_wave() is None and book.open_complete()
    follows = "the rollout is cancelled" if cancels else "the rollout has failed" if over else "the rollout pauses"
    book.say(
        Rule.FAILURES_EXCEEDED,
        f"{sentence}: {follows}.",
        wave=wave,
        failures=found.failures,
        limit=found.limit,
        members=counted,
        code=found.code,
    )
    if cancels:
        stop(book, ReasonCode.TOO_MANY_FAILURES, f"{sentence}.")
    elif over:
        book.move(RolloutState.FAILED, ReasonCode.TOO_MANY_FAILURES, f"{sentence}.")
        book.say(Rule.FINISH, "Everything ran, and the last wave had too many failures: the rollout has failed.")
    else:
        book.move(RolloutState.PAUSED, ReasonCode.TOO_MANY_FAILURES, f"{sentence}.")
    return True


def _before_first(book: Book) -> bool:
    dry_run = book.dry_run()
    if dry_run is not None:
        if dry_run.state is not MemberState.ENDED:
            return False
        if dry_run.outcome is not Outcome.SUCCEEDED:
            reason = f"the dry run on {dry_run.device} ended as {dry_run.outcome}: {dry_run.reason}"
            book.say(Rule.DRY_RUN, f"The rollout pauses: {reason}", device=dry_run.device, outcome=dry_run.outcome)
            book.move(RolloutState.PAUSED, ReasonCode.DRY_RUN_FAILED, reason)
            return False
        book.say(Rule.DRY_RUN, f"The dry run on {dry_run.device} succeeded.", device=dry_run.device)
    if book.rollout.spec.approval is Approval.MANUAL:
        book.say(Rule.APPROVAL, "The first wave waits until somebody promotes the rollout.")
        book.move(RolloutState.AWAITING_APPROVAL, ReasonCode.APPROVAL_NEEDED, "the first wave waits for a person.")
        return False
    following = book.next_wave()
    if following is None:
        return False
    open_wave(book, following)
    return True


def _wave(book: Book) -> bool:
    tally = book.tallies[book.rollout.wave]
    if not tally.complete:
        book.remember_soak(None)
        return False
    following = book.next_wave()
    if following is None and not book.open_complete():
        return False
    gate = book.gate(book.rollout.wave)
    code = verdict(gate, tally)
    if code is not ReasonCode.NONE:
        _fall_short(book, code, last=following is None)
    elif following is None:
        _say_passed(book)
        book.move(RolloutState.SUCCEEDED)
        book.say(Rule.FINISH, "Every wave has ended, and the last one passed its gate: the rollout has succeeded.")
    elif not _soaks(book, gate.soak):
        _say_passed(book)
        if gate.approval is Approval.AUTO:
            open_wave(book, following)
            return True
        book.remember_soak(None)
        book.say(Rule.APPROVAL, f"Wave {following} waits until somebody promotes the rollout.")
        reason = f"wave {following} waits for a person."
        book.move(RolloutState.AWAITING_APPROVAL, ReasonCode.WAVE_APPROVAL_NEEDED, reason)
    return False


def _fall_short(book: Book, code: ReasonCode, *, last: bool) -> None:
    wave = book.rollout.wave
    tally = book.tallies[wave]
    if code is ReasonCode.BELOW_THRESHOLD:
        why = f"{_succeeded(book)}, {_needed(book)} needed"
    else:
        sample = max(1, min(book.gate(wave).min_sample, tally.members - tally.removed))
        why = f"wave {wave} has {tally.results} of the {sample} results that its gate needs"
    follows = "the rollout has failed" if last else "the rollout pauses"
    book.say(Rule.GATE_FAILED, f"{why[0].upper()}{why[1:]}: {follows}.", **_counts(book))
    book.remember_soak(None)
    book.move(RolloutState.FAILED if last else RolloutState.PAUSED, code, f"{why}.")
    if last:
        book.say(Rule.FINISH, "Every wave has ended, and the last one stayed below its gate: the rollout has failed.")


def _say_passed(book: Book) -> None:
    book.say(Rule.GATE_PASSED, f"{_succeeded(book)}, {_needed(book)} needed: its gate is passed.", **_counts(book))


def _succeeded(book: Book) -> str:
    wave, tally = book.rollout.wave, book.tallies[book.rollout.wave]
    return f"{tally.succeeded} of {phones(tally.counted)} of wave {wave} succeeded"


def _counts(book: Book) -> dict[str, int]:
    tally = book.tallies[book.rollout.wave]
    return {
        "succeeded": tally.succeeded,
        "members": tally.counted,
        "needed": _needed(book),
        "results": tally.results,
    }


def _needed(book: Book) -> int:
    gate = book.gate(book.rollout.wave)
    return gate.min_success_percent.of_up(book.tallies[book.rollout.wave].counted)


def _soaks(book: Book, soak: timedelta) -> bool:
    last = book.rollout.last_result_at
    if last is None or book.now >= last + soak:
        return False
    until = last + soak
    if book.rollout.memory.soak_until != until:
        book.remember_soak(until)
        sentence = (
            f"Wave {book.rollout.wave} is complete; the next one waits {duration_text(soak)} after its last result."
        )
        book.say(Rule.SOAK, sentence, until=until.isoformat())
    return True


def _no_progress(book: Book) -> bool:
    allowed = book.rollout.spec.deadlines.progress
    if not book.running or book.live == book.leaving or book.now < book.rollout.moved_at + allowed:
        return False
    reason = f"{book.live - book.leaving} executions are started, and none has ended for {duration_text(allowed)}."
    book.say(Rule.NO_PROGRESS, f"The rollout pauses: {reason}", live=book.live - book.leaving)
    book.move(RolloutState.PAUSED, ReasonCode.NO_PROGRESS, reason)
    return False
