"""RolloutService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from grpc import aio

from droidfleet.v1 import rollout_pb2, rollout_pb2_grpc
from droidfleet_controller.api import convert_rollout as convert
from droidfleet_controller.api import pages, versions
from droidfleet_controller.rollouts.report.service import ReportForm, Reports
from droidfleet_controller.rollouts.report.words import WORDS, Language
from droidfleet_controller.rollouts.service import Rollouts
from droidfleet_controller.rollouts.states import Control, MemberState, Outcome, RolloutState
from droidfleet_controller.rollouts.views import MemberFilter, RolloutFilter, StartRollout
from droidfleet_shared.errors import InvalidInputError

Context = aio.ServicerContext[Any, Any]

BEFORE_THE_FIRST = -1
"""Places of members count from 0."""


class RolloutServicer(rollout_pb2_grpc.RolloutServiceServicer):
    """The service over the use cases."""

    def __init__(self, *, rollouts: Rollouts, reports: Reports) -> None:
        self._rollouts = rollouts
        self._reports = reports

    async def PlanRollout(
        self, request: rollout_pb2.PlanRolloutRequest, context: Context
    ) -> rollout_pb2.PlanRolloutResponse:
        return convert.preflight_to_pb(await self._rollouts.plan(request.spec_json))

    async def StartRollout(
        self, request: rollout_pb2.StartRolloutRequest, context: Context
    ) -> rollout_pb2.StartRolloutResponse:
        asked = StartRollout(spec_json=request.spec_json, request_id=request.request_id, actor=context.peer())
        return convert.started_to_pb(await self._rollouts.start(asked))

    async def GetRollout(
        self, request: rollout_pb2.GetRolloutRequest, context: Context
    ) -> rollout_pb2.GetRolloutResponse:
        return rollout_pb2.GetRolloutResponse(
            rollout=convert.rollout_to_pb(await self._rollouts.get(request.rollout_id))
        )

    async def ListRollouts(
        self, request: rollout_pb2.ListRolloutsRequest, context: Context
    ) -> rollout_pb2.ListRolloutsResponse:
        states = frozenset(_rollout_state(value) for value in request.states)
        scope = f"rollouts {sorted(states)} {request.schedule_id}"
        limit = pages.size(request.page_size)
        before = pages.number_place(request.page_token, scope=scope)
        wanted = RolloutFilter(states=states, schedule_id=request.schedule_id)
        rows = await self._rollouts.page(wanted, before=before, limit=limit + 1)
        shown, token = pages.cut(rows, limit=limit, scope=scope, place=lambda each: each[0])
        return rollout_pb2.ListRolloutsResponse(
            rollouts=[convert.listed_to_pb(view) for _, view in shown],
            next_page_token=token,
        )

    async def WatchRollout(
        self, request: rollout_pb2.WatchRolloutRequest, context: Context
    ) -> AsyncIterator[rollout_pb2.WatchRolloutResponse]:
        async for view in self._rollouts.watch(request.rollout_id):
            yield rollout_pb2.WatchRolloutResponse(rollout=convert.rollout_to_pb(view))

    async def ListRolloutMembers(
        self, request: rollout_pb2.ListRolloutMembersRequest, context: Context
    ) -> rollout_pb2.ListRolloutMembersResponse:
        wanted = MemberFilter(
            wave=request.wave if request.HasField("wave") else None,
            states=frozenset(_member_state(value) for value in request.states),
            outcomes=frozenset(_outcome(value) for value in request.outcomes),
        )
        scope = f"members {request.rollout_id} {wanted.wave} {sorted(wanted.states)} {sorted(wanted.outcomes)}"
        limit = pages.size(request.page_size)
        # Tokens hold numbers from 1.
        place = pages.number_place(request.page_token, scope=scope)
        after = BEFORE_THE_FIRST if place is None else place - 1
        rows = await self._rollouts.members(request.rollout_id, wanted, after=after, limit=limit + 1)
        shown, token = pages.cut(rows, limit=limit, scope=scope, place=lambda each: each.member.place + 1)
        return rollout_pb2.ListRolloutMembersResponse(
            members=[convert.member_to_pb(view) for view in shown],
            next_page_token=token,
        )

    async def ListRolloutDecisions(
        self, request: rollout_pb2.ListRolloutDecisionsRequest, context: Context
    ) -> rollout_pb2.ListRolloutDecisionsResponse:
        scope = f"decisions {request.rollout_id}"
        limit = pages.size(request.page_size)
        after = pages.number_place(request.page_token, scope=scope) or 0
        rows = await self._rollouts.decisions(request.rollout_id, after=after, limit=limit + 1)
        shown, token = pages.cut(rows, limit=limit, scope=scope, place=lambda each: each[0])
        return rollout_pb2.ListRolloutDecisionsResponse(
            decisions=[convert.decision_to_pb(decision) for _, decision in shown],
            next_page_token=token,
        )

    async def ListRolloutMembership(
        self, request: rollout_pb2.ListRolloutMembershipRequest, context: Context
    ) -> rollout_pb2.ListRolloutMembershipResponse:
        scope = f"membership {request.rollout_id}"
        limit = pages.size(request.page_size)
        after = pages.number_place(request.page_token, scope=scope) or 0
        rows = await self._rollouts.membership(request.rollout_id, after=after, limit=limit + 1)
        shown, token = pages.cut(rows, limit=limit, scope=scope, place=lambda each: each[0])
        return rollout_pb2.ListRolloutMembershipResponse(
            changes=[convert.membership_to_pb(change) for _, change in shown],
            next_page_token=token,
        )

    async def ControlRollout(
        self, request: rollout_pb2.ControlRolloutRequest, context: Context
    ) -> rollout_pb2.ControlRolloutResponse:
        view = await self._rollouts.control(
            request.rollout_id,
            _control(request.control),
            version=versions.seen(request.version),
            reason=request.reason,
            actor=context.peer(),
        )
        return rollout_pb2.ControlRolloutResponse(rollout=convert.rollout_to_pb(view))

    async def GetRolloutReport(
        self, request: rollout_pb2.GetRolloutReportRequest, context: Context
    ) -> AsyncIterator[rollout_pb2.GetRolloutReportResponse]:
        form, language = _report_form(request.format), _language(request.language)
        async for data in self._reports.write(request.rollout_id, form, language=language):
            yield rollout_pb2.GetRolloutReportResponse(data=data)


def _report_form(value: rollout_pb2.ReportFormat.ValueType) -> ReportForm:
    try:
        return convert.report_form_from(value)
    except ValueError:
        raise InvalidInputError("BAD_FORMAT", f"format: {value} is not a form of a report.") from None


def _language(value: str) -> Language:
    for language in WORDS:
        if value in ("", language):
            return language
    raise InvalidInputError(
        "BAD_LANGUAGE", f"language: there are no words for {value!r}.", hint=f"One of {', '.join(WORDS)}."
    )


def _rollout_state(value: rollout_pb2.RolloutState.ValueType) -> RolloutState:
    try:
        return convert.rollout_state_from(value)
    except ValueError:
        raise InvalidInputError("BAD_STATE", f"states: {value} is not a state of a rollout.") from None


def _member_state(value: rollout_pb2.MemberState.ValueType) -> MemberState:
    try:
        return convert.member_state_from(value)
    except ValueError:
        raise InvalidInputError("BAD_STATE", f"states: {value} is not a state of a member.") from None


def _outcome(value: rollout_pb2.MemberOutcome.ValueType) -> Outcome:
    try:
        return convert.outcome_from(value)
    except ValueError:
        raise InvalidInputError("BAD_OUTCOME", f"outcomes: {value} is not an outcome of a member.") from None


def _control(value: rollout_pb2.RolloutControl.ValueType) -> Control:
    try:
        return convert.control_from(value)
    except ValueError:
        raise InvalidInputError("BAD_CONTROL", f"control: {value} is not something to do with a rollout.") from None
