"""Wires the drafts of a controller together: the model, what explores with it, and the use cases. Decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.dispatch.cancel import Cancels
from droidfleet_controller.dispatch.reading import Executions
from droidfleet_controller.dispatch.runs import Runs
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.drafts.accepting import Acceptance
from droidfleet_controller.drafts.approvals import Approvals
from droidfleet_controller.drafts.explorations import Explorations
from droidfleet_controller.drafts.followers import Followers
from droidfleet_controller.drafts.log import DraftLogs
from droidfleet_controller.drafts.phones import FleetPhones
from droidfleet_controller.drafts.pictures import Pictures
from droidfleet_controller.drafts.plan_check import FleetPlanCheck
from droidfleet_controller.drafts.service import Drafts
from droidfleet_controller.drafts.settings import DraftBounds, ModelFacts
from droidfleet_controller.drafts.trying import Trials
from droidfleet_controller.fleet.groups import Groups
from droidfleet_controller.fleet.labels import Labels
from droidfleet_controller.fleet.live import Live
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.fleet.targets import Targets
from droidfleet_controller.rollouts.preflight import Preflights
from droidfleet_controller.rollouts.service import Rollouts
from droidfleet_controller.schedules.service import Schedules
from droidfleet_controller.store.database import Database
from droidfleet_controller.tasks.library import Library
from droidfleet_designer.model.port import Model
from droidfleet_shared.clock import Clock
from droidfleet_shared.protocol.effects import EffectWords


@dataclass(frozen=True, slots=True)
class Drafting:
    """The use cases of drafts. `Drafts.run` has to go on while they are used."""

    drafts: Drafts
    trials: Trials
    acceptance: Acceptance


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of the controller that drafts stand on."""

    database: Database
    clock: Clock
    random: Random
    registry: Registry
    labels: Labels
    groups: Groups
    targets: Targets
    live: Live
    runs: Runs
    executions: Executions
    cancels: Cancels
    broadcast: Broadcast
    library: Library
    rollouts: Rollouts
    schedules: Schedules
    files: ArtifactFiles
    artifact_quota_bytes: int
    words: EffectWords


def wired(parts: Parts, *, model: Model | None, facts: ModelFacts | None, bounds: DraftBounds) -> Drafting:
    """The use cases. ``facts`` is there exactly when ``model`` is."""
    database, clock = parts.database, parts.clock
    approvals = Approvals()
    logs = DraftLogs(
        database=database,
        pictures=Pictures(database=database, files=parts.files, quota_bytes=parts.artifact_quota_bytes, clock=clock),
        clock=clock,
        followers=Followers(),
        approvals=approvals,
    )
    plans = FleetPlanCheck(
        preflights=Preflights(database=database, registry=parts.registry, targets=parts.targets), clock=clock
    )
    explorations = Explorations(
        model=model,
        phones=FleetPhones(
            live=parts.live,
            registry=parts.registry,
            labels=parts.labels,
            groups=parts.groups,
            targets=parts.targets,
        ),
        plans=plans,
        logs=logs,
        approvals=approvals,
        limits=bounds.limits,
        words=parts.words,
        clock=clock,
        random=parts.random,
    )
    drafts = Drafts(
        database=database,
        clock=clock,
        live=parts.live,
        registry=parts.registry,
        logs=logs,
        approvals=approvals,
        explorations=explorations,
        plans=plans,
        words=parts.words,
        model=facts,
        bounds=bounds,
    )
    trials = Trials(
        drafts=drafts,
        database=database,
        clock=clock,
        runs=parts.runs,
        executions=parts.executions,
        cancels=parts.cancels,
        broadcast=parts.broadcast,
    )
    acceptance = Acceptance(
        drafts=drafts,
        database=database,
        clock=clock,
        library=parts.library,
        rollouts=parts.rollouts,
        schedules=parts.schedules,
    )
    return Drafting(drafts, trials, acceptance)
