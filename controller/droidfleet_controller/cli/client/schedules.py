"""Calls of ScheduleService. ``schedule`` is a schedule's name or its id."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from droidfleet.v1 import schedule_pb2, schedule_pb2_grpc
from droidfleet_controller.cli.client.channel import CALL_S, RUN_S, Channel, Page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


class ScheduleCalls(Channel):
    """Schedules: their preview, keeping and occurrences."""

    @cached_property
    def _schedules(self) -> schedule_pb2_grpc.ScheduleServiceStub:
        return schedule_pb2_grpc.ScheduleServiceStub(self.channel)

    def preview_schedule(
        self, *, spec_json: str = "", schedule: str = "", count: int = 0, after: datetime | None = None
    ) -> schedule_pb2.PreviewScheduleResponse:
        """The next occurrences of a document or of a stored schedule, or everything that is wrong with it."""
        request = schedule_pb2.PreviewScheduleRequest(spec_json=spec_json, schedule=schedule, count=count)
        if after is not None:
            request.after.FromDatetime(after)
        with self.errors():
            return self._schedules.PreviewSchedule(request, timeout=CALL_S, metadata=self.metadata)

    def create_schedule(self, spec_json: str) -> schedule_pb2.CreateScheduleResponse:
        """Stores a schedule under its name."""
        request = schedule_pb2.CreateScheduleRequest(spec_json=spec_json)
        with self.errors():
            return self._schedules.CreateSchedule(request, timeout=CALL_S, metadata=self.metadata)

    def schedule(self, schedule: str) -> schedule_pb2.Schedule:
        """One schedule."""
        request = schedule_pb2.GetScheduleRequest(schedule=schedule)
        with self.errors():
            return self._schedules.GetSchedule(request, timeout=CALL_S, metadata=self.metadata).schedule

    def schedules(self) -> Iterator[schedule_pb2.Schedule]:
        """All schedules, by name."""

        def fetch(token: str, size: int) -> Page[schedule_pb2.Schedule]:
            request = schedule_pb2.ListSchedulesRequest(page_size=size, page_token=token)
            page = self._schedules.ListSchedules(request, timeout=CALL_S, metadata=self.metadata)
            return page.schedules, page.next_page_token

        return self.paged(fetch)

    def update_schedule(self, schedule: str, *, version: int, spec_json: str) -> schedule_pb2.UpdateScheduleResponse:
        """Replaces the document of what is in this version still."""
        request = schedule_pb2.UpdateScheduleRequest(schedule=schedule, version=version, spec_json=spec_json)
        with self.errors():
            return self._schedules.UpdateSchedule(request, timeout=CALL_S, metadata=self.metadata)

    def set_schedule_enabled(self, schedule: str, *, version: int, enabled: bool) -> schedule_pb2.Schedule:
        """Switches on or off what is in this version still."""
        request = schedule_pb2.SetScheduleEnabledRequest(schedule=schedule, version=version, enabled=enabled)
        with self.errors():
            return self._schedules.SetScheduleEnabled(request, timeout=CALL_S, metadata=self.metadata).schedule

    def delete_schedule(self, schedule: str, *, version: int) -> None:
        """Removes what is in this version still."""
        request = schedule_pb2.DeleteScheduleRequest(schedule=schedule, version=version)
        with self.errors():
            self._schedules.DeleteSchedule(request, timeout=CALL_S, metadata=self.metadata)

    def run_schedule(self, schedule: str, *, request_id: str) -> str:
        """The id of the rollout that it began now, once for each ``request_id``."""
        request = schedule_pb2.RunScheduleRequest(schedule=schedule, request_id=request_id)
        with self.errors():
            return self._schedules.RunSchedule(request, timeout=RUN_S, metadata=self.metadata).rollout_id

    def occurrences(self, schedule: str, *, limit: int) -> Iterator[schedule_pb2.Occurrence]:
        """What became of at most ``limit`` occurrences, newest first."""

        def fetch(token: str, size: int) -> Page[schedule_pb2.Occurrence]:
            request = schedule_pb2.ListOccurrencesRequest(schedule=schedule, page_size=size, page_token=token)
            page = self._schedules.ListOccurrences(request, timeout=CALL_S, metadata=self.metadata)
            return page.occurrences, page.next_page_token

        return self.paged(fetch, limit=limit)
