"""Who begins now: under the limits, in order of place, retries first; and what becomes of phones that are offline."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace

from droidfleet_controller.rollouts.planner.advance import exceeded
from droidfleet_controller.rollouts.planner.book import Book
from droidfleet_controller.rollouts.planner.exchange import Start
from droidfleet_controller.rollouts.planner.retries import RetryBudget
from droidfleet_controller.rollouts.planner.sentences import phones
from droidfleet_controller.rollouts.rollout import DRY_RUN_WAVE, Member, Movement, Rule, Signature
from droidfleet_controller.rollouts.spec import Offline
from droidfleet_controller.rollouts.states import MemberState, Outcome

OFFLINE = "OFFLINE"

MAX_NAMED = 5
"""Phones named in one sentence."""


@dataclass(kw_only=True)
class Starter:
    """The starts of one call. ``left``: how many members may begin, or end for being offline; None: any number."""

    book: Book
    offline: Container[str]
    budget: RetryBudget
    new_id: Callable[[], str]
    left: int | None
    _search: tuple[int, int] | None = (0, 0)
    _begun: Counter[tuple[int, bool]] = field(default_factory=Counter)
    _offline: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    def start(self) -> bool:
        """Begins whatever may begin. Whether members ended instead, so that more may follow."""
        book = self.book
        if not book.running or (book.opening is not None and not book.opening.is_open(book.now)):
            return False
        ended = False
        while self.room() > 0:
            member = book.due_retry()
            if member is not None:
                self._begin(member)
                continue
            member = book.first_waiting()
            if member is None:
                break
            if member.wave != DRY_RUN_WAVE and member.device in self.offline:
                going = self._without(member)
                if going is None:
                    ended = True
                    if exceeded(book, member.wave) or book.tallies[member.wave].complete:
                        break  # its gate comes first
                    continue
                member = going
            self._begin(member)
        self._say()
        return ended

    def room(self) -> int:
        """How many may begin now."""
        book = self.book
        spec = book.rollout.spec
        room = len(book.members) if self.left is None else self.left
        if spec.max_concurrent is not None:
            room = min(room, spec.max_concurrent - book.live)
        allowed = book.pace.room(book.now, book.successes)
        return room if allowed is None else min(room, allowed)

    def _begin(self, member: Member) -> None:
        book = self.book
        if book.live == book.leaving:
            book.moving()
        again = member.tries > 0
        begun = replace(
            member,
            state=MemberState.STARTED,
            outcome=Outcome.NONE,
            tries=member.tries + 1,
            execution_id=self.new_id(),
            started_at=book.now,
            retry_at=None,
        )
        book.put(begun)
        book.starts.append(
            Start(
                device=begun.device,
                execution_id=begun.execution_id,
                values_id=begun.values_id,
                try_number=begun.tries,
            )
        )
        book.pace.note(book.now)
        self.budget.note(book.now, begun=1)
        self._begun[begun.wave, again] += 1
        self._use()

    def _use(self) -> None:
        if self.left is not None:
            self.left -= 1

    def _without(self, member: Member) -> Member | None:
        """What becomes of a member that is offline when its turn comes: who begins in its place; None: it ended."""
        match self.book.rollout.spec.offline:
            case Offline.WAIT:
                return member
            case Offline.SUBSTITUTE:
                return self._substituted(member)
            case Offline.SKIP:
                self._end(member, Outcome.SKIPPED, "OFFLINE: it was offline when its turn came, and is left out.", None)
            case Offline.FAIL:
                self._end(member, Outcome.EXPIRED, "OFFLINE: it was offline when its turn came.", Signature(OFFLINE))
        return None

    def _end(self, member: Member, outcome: Outcome, reason: str, signature: Signature | None) -> None:
        book = self.book
        book.put(
            replace(
                member,
                state=MemberState.ENDED,
                outcome=outcome,
                ended_at=book.now,
                reason=reason,
                signature=signature,
            )
        )
        book.remember_signature(signature)
        self._offline[member.wave].append(member.device)
        self._use()

    def _substituted(self, member: Member) -> Member:
        book = self.book
        while self._search is not None:
            found = book.waiting_later(*self._search)
            if found is None:
                self._search = None
                break
            wave, index, other = found
            self._search = (wave, index + 1)
            if other.device in self.offline:
                continue
            here = replace(other, place=member.place, wave=member.wave)
            there = replace(member, place=other.place, wave=other.wave)
            reason = f"{member.device} is offline: {other.device} takes its place in wave {here.wave}."
            for moved in (here, there):
                book.put(moved)
                book.note_movement(moved, Movement.MOVED, reason)
            book.say(Rule.SUBSTITUTE, reason, wave=here.wave, offline=member.device, instead=other.device)
            return here
        return member

    def _say(self) -> None:
        book = self.book
        if self._begun:
            book.remember_starts()
        for wave, devices in sorted(self._offline.items()):
            outcome = "left out" if book.rollout.spec.offline is Offline.SKIP else "counted as failures"
            book.say(
                Rule.OFFLINE,
                f"{len(devices)} offline phones of wave {wave} are {outcome}: {named(devices)}.",
                wave=wave,
                phones=len(devices),
            )
        for wave in sorted({wave for wave, _ in self._begun}):
            first, again = self._begun[wave, False], self._begun[wave, True]
            tally = book.tallies[wave]
            what = "the dry run" if wave == DRY_RUN_WAVE else f"wave {wave}"
            book.say(
                Rule.START,
                f"{_begins(first, again, what)} {tally.live} going on, {tally.waiting} waiting.",
                wave=wave,
                first=first,
                again=again,
                live=tally.live,
                waiting=tally.waiting,
            )
        self._offline.clear()
        self._begun.clear()


def _begins(first: int, again: int, what: str) -> str:
    once_more = f", {again} of them again" if again else ""
    return f"{phones(first + again)} of {what} begin{'' if first + again > 1 else 's'}{once_more}:"


def named(devices: list[str]) -> str:
    """The first few by name, for a sentence."""
    more = len(devices) - MAX_NAMED
    return ", ".join(devices[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
