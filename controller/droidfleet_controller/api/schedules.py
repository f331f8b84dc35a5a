"""ScheduleService."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from grpc import aio

from droidfleet.v1 import schedule_pb2, schedule_pb2_grpc
from droidfleet_controller.api import convert_schedule as convert
from droidfleet_controller.api import pages, versions
from droidfleet_controller.api.convert import instant
from droidfleet_controller.schedules.service import Schedules

Context = aio.ServicerContext[Any, Any]

_SCOPE = "schedules"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class ScheduleServicer(schedule_pb2_grpc.ScheduleServiceServicer):
    """The service over the use cases."""

    def __init__(self, *, schedules: Schedules) -> None:
        self._schedules = schedules

    async def PreviewSchedule(
        self, request: schedule_pb2.PreviewScheduleRequest, context: Context
    ) -> schedule_pb2.PreviewScheduleResponse:
        preview = await self._schedules.preview(
            spec_json=request.spec_json,
            schedule=request.schedule,
            count=request.count,
            after=instant(request.after) if request.HasField("after") else None,
        )
        return convert.preview_to_pb(preview)

    async def CreateSchedule(
        self, request: schedule_pb2.CreateScheduleRequest, context: Context
    ) -> schedule_pb2.CreateScheduleResponse:
        saved = convert.saved_to_pb(await self._schedules.create(request.spec_json, actor=context.peer()))
        return schedule_pb2.CreateScheduleResponse(schedule=saved.schedule, warnings=saved.warnings)

    async def GetSchedule(
        self, request: schedule_pb2.GetScheduleRequest, context: Context
    ) -> schedule_pb2.GetScheduleResponse:
        view = await self._schedules.get(request.schedule)
        return schedule_pb2.GetScheduleResponse(schedule=convert.schedule_to_pb(view))

    async def ListSchedules(
        self, request: schedule_pb2.ListSchedulesRequest, context: Context
    ) -> schedule_pb2.ListSchedulesResponse:
        limit = pages.size(request.page_size)
        after = pages.text_place(request.page_token, scope=_SCOPE)
        found = await self._schedules.page(after=after, limit=limit + 1)
        shown, token = pages.cut(found, limit=limit, scope=_SCOPE, place=lambda each: each.schedule.spec.name)
        return schedule_pb2.ListSchedulesResponse(
            schedules=[convert.schedule_to_pb(view) for view in shown],
            next_page_token=token,
        )

    async def UpdateSchedule(
        self, request: schedule_pb2.UpdateScheduleRequest, context: Context
    ) -> schedule_pb2.UpdateScheduleResponse:
        saved = await self._schedules.update(
            request.schedule,
            version=versions.seen(request.version),
            spec_json=request.spec_json,
            actor=context.peer(),
        )
        return convert.saved_to_pb(saved)

    async def SetScheduleEnabled(
        self, request: schedule_pb2.SetScheduleEnabledRequest, context: Context
    ) -> schedule_pb2.SetScheduleEnabledResponse:
        view = await self._schedules.set_enabled(
            request.schedule, version=versions.seen(request.version), enabled=request.enabled, actor=context.peer()
        )
        return schedule_pb2.SetScheduleEnabledResponse(schedule=convert.schedule_to_pb(view))

    async def DeleteSchedule(
        self, request: schedule_pb2.DeleteScheduleRequest, context: Context
    ) -> schedule_pb2.DeleteScheduleResponse:
        await self._schedules.delete(request.schedule, version=versions.seen(request.version), actor=context.peer())
        return schedule_pb2.DeleteScheduleResponse()

    async def RunSchedule(
        self, request: schedule_pb2.RunScheduleRequest, context: Context
    ) -> schedule_pb2.RunScheduleResponse:
        rollout_id = await self._schedules.run_now(
            request.schedule, request_id=request.request_id, actor=context.peer()
        )
        return schedule_pb2.RunScheduleResponse(rollout_id=rollout_id)

    async def ListOccurrences(
        self, request: schedule_pb2.ListOccurrencesRequest, context: Context
    ) -> schedule_pb2.ListOccurrencesResponse:
        scope = f"occurrences {request.schedule}"
        limit = pages.size(request.page_size)
        before = _instant(pages.number_place(request.page_token, scope=scope))
        found = await self._schedules.occurrences(request.schedule, before=before, limit=limit + 1)
        shown, token = pages.cut(found, limit=limit, scope=scope, place=lambda each: _number(each.intended_at))
        return schedule_pb2.ListOccurrencesResponse(
            occurrences=[convert.occurrence_to_pb(occurrence) for occurrence in shown],
            next_page_token=token,
        )


def _number(instant: datetime) -> int:
    """An instant as page tokens hold it."""
    return (instant - _EPOCH) // _MICROSECOND


def _instant(number: int | None) -> datetime | None:
    """The instant of a page token.

    Raises:
        InvalidInputError: ``BAD_PAGE_TOKEN``.
    """
    try:
        return None if number is None else _EPOCH + number * _MICROSECOND
    except OverflowError:
        raise pages.bad_token() from None
