"""Calls of DraftService."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from droidfleet.v1 import draft_pb2, draft_pb2_grpc
from droidfleet_controller.cli.client.channel import CALL_S, RUN_S, STREAM_S, Channel, Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TRIAL_S = 1_200.0
"""Deadline of a trial: a quarter of an hour for the task, and the way there and back."""

CHECK_S = 120.0
"""Deadline of an edit: every selector is matched on every screen that was seen."""


class DraftCalls(Channel):
    """Drafts: their explorations, review, trials and acceptance."""

    @cached_property
    def _drafts(self) -> draft_pb2_grpc.DraftServiceStub:
        return draft_pb2_grpc.DraftServiceStub(self.channel)

    def draft_model(self) -> draft_pb2.GetModelResponse:
        """The model that drafts, and what a draft may cost."""
        with self.errors():
            return self._drafts.GetModel(draft_pb2.GetModelRequest(), timeout=CALL_S, metadata=self.metadata)

    def start_draft(self, brief_json: str, *, request_id: str) -> draft_pb2.Draft:
        """Begins an exploration, once for each ``request_id``."""
        request = draft_pb2.StartDraftRequest(brief_json=brief_json, request_id=request_id)
        with self.errors():
            return self._drafts.StartDraft(request, timeout=RUN_S, metadata=self.metadata).draft

    def follow_draft(self, draft_id: str) -> Iterator[draft_pb2.FollowDraftResponse]:
        """What happened, then what happens, until its end; survives a controller's restart."""
        last = 0

        def opened() -> Iterator[draft_pb2.FollowDraftResponse]:
            request = draft_pb2.FollowDraftRequest(draft_id=draft_id, after_sequence=last)
            return self._drafts.FollowDraft(request, timeout=STREAM_S, metadata=self.metadata)

        for item in self.resumed(opened, quiet=True):
            last = item.entry.sequence or last
            yield item

    def answer_approval(self, draft_id: str, approval_id: str, *, allowed: bool) -> None:
        """Allows what is withheld, or not."""
        request = draft_pb2.AnswerApprovalRequest(draft_id=draft_id, approval_id=approval_id, allowed=allowed)
        with self.errors():
            self._drafts.AnswerApproval(request, timeout=CALL_S, metadata=self.metadata)

    def stop_draft(self, draft_id: str) -> draft_pb2.Draft:
        """Ends an exploration."""
        request = draft_pb2.StopDraftRequest(draft_id=draft_id)
        with self.errors():
            return self._drafts.StopDraft(request, timeout=RUN_S, metadata=self.metadata).draft

    def drafts(self, *, states: Sequence[str] = (), limit: int | None = None) -> Iterator[draft_pb2.Draft]:
        """Drafts, newest first. ``states``: words such as ``READY``; none: all."""
        wanted = [draft_pb2.DraftState.Value(f"DRAFT_STATE_{state}") for state in states]

        def fetch(token: str, size: int) -> Page[draft_pb2.Draft]:
            request = draft_pb2.ListDraftsRequest(states=wanted, page_size=size, page_token=token)
            page = self._drafts.ListDrafts(request, timeout=CALL_S, metadata=self.metadata)
            return page.drafts, page.next_page_token

        return self.paged(fetch, limit=limit)

    def draft(self, draft_id: str) -> draft_pb2.Draft:
        """One draft with everything but its log."""
        request = draft_pb2.GetDraftRequest(draft_id=draft_id)
        with self.errors():
            return self._drafts.GetDraft(request, timeout=CALL_S, metadata=self.metadata).draft

    def draft_picture(self, draft_id: str, digest: str) -> draft_pb2.GetDraftPictureResponse:
        """A picture that the exploration took."""
        request = draft_pb2.GetDraftPictureRequest(draft_id=draft_id, digest=digest)
        with self.errors():
            return self._drafts.GetDraftPicture(request, timeout=CALL_S, metadata=self.metadata)

    def edit_draft(self, draft_id: str, *, version: int, draft_json: str) -> draft_pb2.Draft:
        """Puts another version in place of what is in this one still."""
        request = draft_pb2.EditDraftRequest(draft_id=draft_id, version=version, draft_json=draft_json)
        with self.errors():
            return self._drafts.EditDraft(request, timeout=CHECK_S, metadata=self.metadata).draft

    def try_draft(self, request: draft_pb2.TryDraftRequest) -> draft_pb2.DraftTrial:
        """Runs it, or one step of it, and waits for the end."""
        with self.errors():
            return self._drafts.TryDraft(request, timeout=TRIAL_S, metadata=self.metadata).trial

    def accept_draft(self, request: draft_pb2.AcceptDraftRequest) -> draft_pb2.Draft:
        """Makes it a task, and more where asked."""
        with self.errors():
            return self._drafts.AcceptDraft(request, timeout=RUN_S, metadata=self.metadata).draft

    def discard_draft(self, draft_id: str) -> draft_pb2.Draft:
        """Ends it for good."""
        request = draft_pb2.DiscardDraftRequest(draft_id=draft_id)
        with self.errors():
            return self._drafts.DiscardDraft(request, timeout=RUN_S, metadata=self.metadata).draft
