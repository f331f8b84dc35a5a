"""From a prepared rollout to one in the database: itself, its members and their values, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from droidfleet_controller.rollouts.issues import SpecIssue
from droidfleet_controller.rollouts.rollout import (
    DRY_RUN_PLACE,
    DRY_RUN_WAVE,
    Decision,
    Member,
    Rollout,
    Rule,
    Subject,
)
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.rollouts.states import RolloutState
from droidfleet_controller.rollouts.values import equal, own_places, values_id
from droidfleet_controller.rollouts.waves import layout, places
from droidfleet_controller.store import events, rollouts, run_values
from droidfleet_controller.store.events import AuditLine, FleetEvent
from droidfleet_controller.tasks.values import RunValues
from droidfleet_shared.errors import ConflictError


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A rollout that can be started. ``spec``: as asked, with `HIDDEN` in the places of secrets; ``devices``: its
    members in the order listed; ``wave_sizes``: 0 for a wave that is left out; ``kept``: the values by where they are
    kept (`values.split`); ``digest`` stands for all that was asked for but the values."""

    spec: RolloutSpec
    subject: Subject
    devices: tuple[str, ...]
    wave_sizes: tuple[int, ...]
    kept: Mapping[str, RunValues]
    digest: str
    warnings: tuple[SpecIssue, ...] = ()


def create(
    connection: Connection,
    prepared: Prepared,
    *,
    rollout_id: str,
    now: datetime,
    request_id: str,
    actor: str,
    schedule_id: str = "",
    intended_at: datetime | None = None,
) -> Rollout:
    """Writes a new rollout. Nothing is started yet: that is the planner's."""
    spec = prepared.spec
    rollout = Rollout(
        rollout_id=rollout_id,
        spec=spec,
        subject=prepared.subject,
        state=RolloutState.RUNNING,
        wave_sizes=prepared.wave_sizes,
        created_at=now,
        updated_at=now,
        moved_at=now,
        schedule_id=schedule_id,
        intended_at=intended_at,
        actor=actor,
    )
    rollouts.add(connection, rollout, request_id=request_id or rollout_id, digest=prepared.digest)
    rollouts.add_members(connection, rollout_id, _members(rollout, prepared))
    run_values.add_many(
        connection, {rollout_id + place: values for place, values in prepared.kept.items()}, held_by=rollout_id
    )
    count = len(prepared.devices)
    waves = sum(size > 0 for size in prepared.wave_sizes)
    what = f"{spec.task} revision {prepared.subject.revision} on {count} phone(s) in {waves} wave(s)"
    decision = Decision(
        at=now, rule=Rule.CREATED, wave=0, numbers={"members": count, "waves": waves}, sentence=f"Created: {what}."
    )
    rollouts.add_decisions(connection, rollout_id, [decision])
    events.add(
        connection,
        [FleetEvent(occurred_at=now, recorded_at=now, kind="RolloutCreated", summary=f"rollout {rollout_id}: {what}")],
    )
    events.add_audit(
        connection, AuditLine(at=now, actor=actor, command="StartRollout", subject=rollout_id, details=what)
    )
    return rollout


def created_before(
    connection: Connection, request_id: str, *, digest: str, asked: Mapping[str, RunValues]
) -> Rollout | None:
    """The rollout that the same call created; None: it is a new one. ``asked``: the values of the call, as kept.

    Raises:
        ConflictError: ``REQUEST_ID_REUSED``.
    """
    found = rollouts.by_request(connection, request_id) if request_id else None
    if found is None:
        return None
    rollout, known = found
    ids = {place: rollout.rollout_id + place for place in asked}
    stored = run_values.load(connection, ids.values())
    ours = {place: stored[values_id] for place, values_id in ids.items() if values_id in stored}
    if known != digest or not equal(ours, asked):
        raise ConflictError(
            "REQUEST_ID_REUSED",
            f"request id {request_id!r} was used for another call (rollout {rollout.rollout_id}).",
            hint="Use a new request id for a new call.",
        )
    return rollout


def _members(rollout: Rollout, prepared: Prepared) -> list[Member]:
    spec, rollout_id = prepared.spec, rollout.rollout_id
    own = own_places(spec)
    ordered = places(rollout_id, prepared.devices, spec.order)
    members = [
        Member(
            device=each.device,
            place=each.place,
            wave=each.wave,
            values_id=values_id(rollout_id, spec, own, each.device),
        )
        for each in layout(ordered, prepared.wave_sizes)
    ]
    if spec.dry_run is not None:
        device = spec.dry_run.device
        kept = values_id(rollout_id, spec, own, device)
        members.append(Member(device=device, place=DRY_RUN_PLACE, wave=DRY_RUN_WAVE, values_id=kept))
    return members
