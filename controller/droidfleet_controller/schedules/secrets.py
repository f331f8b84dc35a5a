"""The secrets among the values of a schedule's rollout: kept beside it, and held until it is deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlalchemy import Connection

from droidfleet_controller.rollouts import values
from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.rollouts.values import Kept
from droidfleet_controller.schedules.schedule import Schedule
from droidfleet_controller.store import run_values
from droidfleet_shared.protocol.pointers import Json, pointer
from droidfleet_shared.secrets import HIDDEN


def whole(connection: Connection, schedule: Schedule) -> RolloutSpec:
    """The rollout of a stored schedule with its secrets."""
    return values.joined(schedule.spec.rollout, load(connection, schedule.schedule_id))


def load(connection: Connection, schedule_id: str) -> Kept:
    """What is kept for a schedule, by where."""
    found = run_values.held(connection, schedule_id)
    return {key.removeprefix(schedule_id): each for key, each in found.items()}


def keep(connection: Connection, schedule_id: str, kept: Kept) -> None:
    """Keeps these values for a schedule, and forgets those before."""
    run_values.remove_held(connection, schedule_id)
    new = {schedule_id + place: each for place, each in kept.items() if each.secrets}
    run_values.add_many(connection, new, held_by=schedule_id)


def forget(connection: Connection, schedule_id: str) -> None:
    """Forgets them all."""
    run_values.remove_held(connection, schedule_id)


def restored(asked: RolloutSpec, before: RolloutSpec, kept: Kept) -> RolloutSpec:
    """A new document for a schedule, in which `HIDDEN` stands for the secret that it had in this place."""
    known = values.joined(before, kept)
    return asked.model_copy(
        update={
            "inputs": _restored(asked.inputs, known.inputs),
            "device_inputs": {
                device: _restored(own, known.device_inputs.get(device, {}))
                for device, own in asked.device_inputs.items()
            },
        }
    )


def _restored(asked: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
    return {name: known.get(name, value) if value == HIDDEN else value for name, value in asked.items()}


def lacking(kept: Kept, spec: RolloutSpec) -> Iterator[SpecIssue]:
    """Secrets of a document that are not there: one that was read has `HIDDEN` in their places."""
    secret = {name for each in kept.values() for name in each.secrets}
    places: list[tuple[tuple[str, ...], Mapping[str, Json]]] = [(("inputs",), spec.inputs)]
    places += [(("deviceInputs", device), own) for device, own in spec.device_inputs.items()]
    for place, given in places:
        for name, value in given.items():
            if name in secret and value == HIDDEN:
                message = f"`{HIDDEN}` stands where the secret was hidden, and it is not known here"
                yield SpecIssue(pointer((*place, name)), IssueCode.BAD_VALUE, message, "Write the secret itself.")
