"""From a checked document to a rollout in the database: the rollout, its members, their values, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from droidfleet_controller.rollouts.issues import SpecIssue
from droidfleet_controller.rollouts.rollout import Subject
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.tasks.values import RunValues


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A rollout that can be started. ``spec``: as asked, values and all; ``devices``: its members in the order listed;
    ``values``: for all phones, and ``device_values`` for those that have their own (merged); secrets apart;
    ``digest`` stands for all that was asked for, secrets left out."""

    spec: RolloutSpec
    subject: Subject
    devices: tuple[str, ...]
    values: RunValues
    device_values: Mapping[str, RunValues]
    warnings: tuple[SpecIssue, ...]
    digest: str
