"""Calls of RolloutService."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from droidfleet.v1 import rollout_pb2, rollout_pb2_grpc
from droidfleet_controller.cli.client.channel import CALL_S, RUN_S, STREAM_S, Channel, Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REPORT_S = 300.0
"""Deadline of a whole report: 10,000 phones with their results and the pictures of failures."""


class RolloutCalls(Channel):
    """Rollouts: their plan, start, progress, control and report."""

    @cached_property
    def _rollouts(self) -> rollout_pb2_grpc.RolloutServiceStub:
        return rollout_pb2_grpc.RolloutServiceStub(self.channel)

    def plan_rollout(self, spec_json: str) -> rollout_pb2.PlanRolloutResponse:
        """What a rollout would do, or everything that is wrong with it."""
        request = rollout_pb2.PlanRolloutRequest(spec_json=spec_json)
        with self.errors():
            return self._rollouts.PlanRollout(request, timeout=RUN_S, metadata=self.metadata)

    def start_rollout(self, spec_json: str, *, request_id: str) -> rollout_pb2.StartRolloutResponse:
        """Begins a rollout, once for each ``request_id``."""
        request = rollout_pb2.StartRolloutRequest(spec_json=spec_json, request_id=request_id)
        with self.errors():
            return self._rollouts.StartRollout(request, timeout=RUN_S, metadata=self.metadata)

    def rollout(self, rollout_id: str) -> rollout_pb2.Rollout:
        """One rollout with its waves."""
        request = rollout_pb2.GetRolloutRequest(rollout_id=rollout_id)
        with self.errors():
            return self._rollouts.GetRollout(request, timeout=CALL_S, metadata=self.metadata).rollout

    def rollouts(
        self, *, limit: int, states: Sequence[rollout_pb2.RolloutState.ValueType] = (), schedule_id: str = ""
    ) -> Iterator[rollout_pb2.Rollout]:
        """At most ``limit`` rollouts, newest first, without waves."""

        def fetch(token: str, size: int) -> Page[rollout_pb2.Rollout]:
            request = rollout_pb2.ListRolloutsRequest(
                page_size=size, page_token=token, states=states, schedule_id=schedule_id
            )
            page = self._rollouts.ListRollouts(request, timeout=CALL_S, metadata=self.metadata)
            return page.rollouts, page.next_page_token

        return self.paged(fetch, limit=limit)

    def watch_rollout(self, rollout_id: str) -> Iterator[rollout_pb2.Rollout]:
        """The rollout as it is and after changes, until it has ended; survives a controller's restart."""

        def opened() -> Iterator[rollout_pb2.WatchRolloutResponse]:
            request = rollout_pb2.WatchRolloutRequest(rollout_id=rollout_id)
            return self._rollouts.WatchRollout(request, timeout=STREAM_S, metadata=self.metadata)

        for response in self.resumed(opened, quiet=False):
            yield response.rollout

    def rollout_members(
        self,
        rollout_id: str,
        *,
        limit: int,
        wave: int | None = None,
        states: Sequence[rollout_pb2.MemberState.ValueType] = (),
        outcomes: Sequence[rollout_pb2.MemberOutcome.ValueType] = (),
    ) -> Iterator[rollout_pb2.RolloutMember]:
        """At most ``limit`` phones of a rollout, in the order of their places."""

        def fetch(token: str, size: int) -> Page[rollout_pb2.RolloutMember]:
            request = rollout_pb2.ListRolloutMembersRequest(
                rollout_id=rollout_id, page_size=size, page_token=token, wave=wave, states=states, outcomes=outcomes
            )
            page = self._rollouts.ListRolloutMembers(request, timeout=CALL_S, metadata=self.metadata)
            return page.members, page.next_page_token

        return self.paged(fetch, limit=limit)

    def rollout_decisions(self, rollout_id: str) -> Iterator[rollout_pb2.RolloutDecision]:
        """What was decided and why, oldest first."""

        def fetch(token: str, size: int) -> Page[rollout_pb2.RolloutDecision]:
            request = rollout_pb2.ListRolloutDecisionsRequest(rollout_id=rollout_id, page_size=size, page_token=token)
            page = self._rollouts.ListRolloutDecisions(request, timeout=CALL_S, metadata=self.metadata)
            return page.decisions, page.next_page_token

        return self.paged(fetch)

    def rollout_membership(self, rollout_id: str) -> Iterator[rollout_pb2.RolloutMembershipChange]:
        """Who joined, left or changed waves, oldest first."""

        def fetch(token: str, size: int) -> Page[rollout_pb2.RolloutMembershipChange]:
            request = rollout_pb2.ListRolloutMembershipRequest(rollout_id=rollout_id, page_size=size, page_token=token)
            page = self._rollouts.ListRolloutMembership(request, timeout=CALL_S, metadata=self.metadata)
            return page.changes, page.next_page_token

        return self.paged(fetch)

    def control_rollout(
        self, rollout_id: str, control: rollout_pb2.RolloutControl.ValueType, *, version: int, reason: str = ""
    ) -> rollout_pb2.Rollout:
        """Pauses, resumes, promotes, cancels or aborts what is in this version still."""
        request = rollout_pb2.ControlRolloutRequest(
            rollout_id=rollout_id, control=control, version=version, reason=reason
        )
        with self.errors():
            return self._rollouts.ControlRollout(request, timeout=RUN_S, metadata=self.metadata).rollout

    def rollout_report(
        self, rollout_id: str, form: rollout_pb2.ReportFormat.ValueType, *, language: str = ""
    ) -> Iterator[bytes]:
        """The report's bytes, in pieces."""
        request = rollout_pb2.GetRolloutReportRequest(rollout_id=rollout_id, format=form, language=language)
        with self.errors():
            for piece in self._rollouts.GetRolloutReport(request, timeout=REPORT_S, metadata=self.metadata):
                yield piece.data
