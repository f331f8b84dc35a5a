"""What is counted about the members of one wave, kept by what changes."""

from __future__ import annotations

from collections import Counter

from droidfleet_controller.rollouts.rollout import ALL_CODES, Member
from droidfleet_controller.rollouts.states import FAILURES, MemberState, Outcome


def failure_code(member: Member) -> str:
    """Under which code a member that ended as a failure is counted."""
    return member.signature.code if member.signature else member.outcome.value


class Tally:
    """The counts of one wave. ``live``: started members, ``leaving``: those of them that left; ``results``: counted
    outcomes; ``failures``: by code, with `ALL_CODES` for all of them."""

    def __init__(self) -> None:
        self.members = 0
        self.waiting = 0
        self.live = 0
        self.leaving = 0
        self.retrying = 0
        self.results = 0
        self.succeeded = 0
        self.removed = 0
        self.skipped = 0
        self.failures: Counter[str] = Counter()

    @property
    def failed(self) -> int:
        """How many failures there are."""
        return self.failures[ALL_CODES]

    @property
    def counted(self) -> int:
        """Members that stand in the ratio."""
        return self.members - self.removed - self.skipped

    @property
    def complete(self) -> bool:
        """Whether every member that counts has ended."""
        return self.waiting == self.retrying == 0 and self.live == self.leaving

    def add(self, member: Member) -> None:
        """Counts a member in."""
        self._count(member, 1)

    def remove(self, member: Member) -> None:
        """Counts a member out, as it was counted in."""
        self._count(member, -1)

    def _count(self, member: Member, by: int) -> None:
        self.members += by
        match member.state:
            case MemberState.WAITING:
                self.waiting += by
            case MemberState.RETRYING:
                self.retrying += by
            case MemberState.STARTED:
                self.live += by
                if member.outcome is Outcome.REMOVED:
                    self.leaving += by
                    self.removed += by
            case MemberState.ENDED:
                self._count_end(member, by)

    def _count_end(self, member: Member, by: int) -> None:
        match member.outcome:
            case Outcome.REMOVED:
                self.removed += by
            case Outcome.SKIPPED:
                self.skipped += by
            case outcome:
                self.results += by
                if outcome is Outcome.SUCCEEDED:
                    self.succeeded += by
                elif outcome in FAILURES:
                    self.failures[ALL_CODES] += by
                    self.failures[failure_code(member)] += by
