"""DraftService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from grpc import aio

from droidfleet.v1 import draft_pb2, draft_pb2_grpc
from droidfleet_controller.api import convert_draft as convert
from droidfleet_controller.api import pages, versions
from droidfleet_controller.drafts.accepting import Acceptance, AcceptDraft
from droidfleet_controller.drafts.service import Drafts, StartDraft
from droidfleet_controller.drafts.trying import Trials, TryDraft
from droidfleet_controller.tasks.values import read_values
from droidfleet_shared.errors import InvalidInputError

Context = aio.ServicerContext[Any, Any]


class DraftServicer(draft_pb2_grpc.DraftServiceServicer):
    """The service over the use cases."""

    def __init__(self, *, drafts: Drafts, trials: Trials, acceptance: Acceptance) -> None:
        self._drafts = drafts
        self._trials = trials
        self._acceptance = acceptance

    async def GetModel(self, request: draft_pb2.GetModelRequest, context: Context) -> draft_pb2.GetModelResponse:
        return convert.model_to_pb(self._drafts.model, self._drafts.bounds)

    async def StartDraft(self, request: draft_pb2.StartDraftRequest, context: Context) -> draft_pb2.StartDraftResponse:
        asked = StartDraft(brief=request.brief_json, request_id=request.request_id, actor=context.peer())
        return draft_pb2.StartDraftResponse(draft=convert.draft_to_pb(await self._drafts.start(asked)))

    async def FollowDraft(
        self, request: draft_pb2.FollowDraftRequest, context: Context
    ) -> AsyncIterator[draft_pb2.FollowDraftResponse]:
        if request.after_sequence < 0:
            raise InvalidInputError("BAD_SEQUENCE", "after_sequence: 0 or more.")
        async for item in self._drafts.follow(request.draft_id, after=request.after_sequence):
            yield convert.followed_to_pb(item)

    async def AnswerApproval(
        self, request: draft_pb2.AnswerApprovalRequest, context: Context
    ) -> draft_pb2.AnswerApprovalResponse:
        await self._drafts.answer(request.draft_id, request.approval_id, allowed=request.allowed, actor=context.peer())
        return draft_pb2.AnswerApprovalResponse()

    async def StopDraft(self, request: draft_pb2.StopDraftRequest, context: Context) -> draft_pb2.StopDraftResponse:
        return draft_pb2.StopDraftResponse(draft=convert.draft_to_pb(await self._drafts.stop(request.draft_id)))

    async def ListDrafts(self, request: draft_pb2.ListDraftsRequest, context: Context) -> draft_pb2.ListDraftsResponse:
        states = frozenset(convert.state_of(value) for value in request.states)
        scope = f"drafts {sorted(states)}"
        limit = pages.size(request.page_size)
        before = pages.number_place(request.page_token, scope=scope)
        rows = await self._drafts.page(states=states, before=before, limit=limit + 1)
        shown, token = pages.cut(rows, limit=limit, scope=scope, place=lambda each: each[0])
        return draft_pb2.ListDraftsResponse(
            drafts=[convert.draft_to_pb(draft) for _, draft in shown], next_page_token=token
        )

    async def GetDraft(self, request: draft_pb2.GetDraftRequest, context: Context) -> draft_pb2.GetDraftResponse:
        return draft_pb2.GetDraftResponse(draft=convert.draft_to_pb(await self._drafts.get(request.draft_id)))

    async def GetDraftSnapshot(
        self, request: draft_pb2.GetDraftSnapshotRequest, context: Context
    ) -> draft_pb2.GetDraftSnapshotResponse:
        snapshot = await self._drafts.snapshot(request.draft_id, request.snapshot_id)
        return draft_pb2.GetDraftSnapshotResponse(snapshot_json=snapshot.model_dump_json(by_alias=True))

    async def GetDraftPicture(
        self, request: draft_pb2.GetDraftPictureRequest, context: Context
    ) -> draft_pb2.GetDraftPictureResponse:
        shot = await self._drafts.picture(request.draft_id, request.digest)
        return draft_pb2.GetDraftPictureResponse(media_type=shot.media_type, data=shot.data)

    async def EditDraft(self, request: draft_pb2.EditDraftRequest, context: Context) -> draft_pb2.EditDraftResponse:
        edited = await self._drafts.edit(
            request.draft_id,
            version=versions.seen(request.version),
            text=request.draft_json,
            actor=context.peer(),
        )
        return draft_pb2.EditDraftResponse(draft=convert.draft_to_pb(edited))

    async def TryDraft(self, request: draft_pb2.TryDraftRequest, context: Context) -> draft_pb2.TryDraftResponse:
        trial = await self._trials.run(
            TryDraft(
                draft_id=request.draft_id,
                version=versions.seen(request.version),
                step_id=request.step_id,
                allow=tuple(request.allow_steps),
                values=read_values(request.input_values_json, random_seed=None),
                device=request.device,
                request_id=request.request_id,
                actor=context.peer(),
            )
        )
        return draft_pb2.TryDraftResponse(trial=convert.trial_to_pb(trial))

    async def AcceptDraft(
        self, request: draft_pb2.AcceptDraftRequest, context: Context
    ) -> draft_pb2.AcceptDraftResponse:
        accepted = await self._acceptance.accept(
            AcceptDraft(
                draft_id=request.draft_id,
                version=versions.seen(request.version),
                use=convert.use_of(request.use),
                schedule=request.schedule_name,
                inputs=read_values(request.input_values_json, random_seed=None).values,
                request_id=request.request_id,
                actor=context.peer(),
            )
        )
        return draft_pb2.AcceptDraftResponse(draft=convert.draft_to_pb(accepted))

    async def DiscardDraft(
        self, request: draft_pb2.DiscardDraftRequest, context: Context
    ) -> draft_pb2.DiscardDraftResponse:
        discarded = await self._drafts.discard(request.draft_id, actor=context.peer())
        return draft_pb2.DiscardDraftResponse(draft=convert.draft_to_pb(discarded))
