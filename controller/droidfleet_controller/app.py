"""Wires a controller together and runs it: everything is started in the order of dependence and stopped in reverse.

The one module that knows all parts; it decides nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from importlib.metadata import version
from random import Random, SystemRandom

import structlog

from droidfleet_controller import process
from droidfleet_controller.admin import sqlite_file
from droidfleet_controller.admin.checks import Checks
from droidfleet_controller.admin.rebuild import Rebuild
from droidfleet_controller.api.admin import AdminServicer
from droidfleet_controller.api.devices import DeviceServicer
from droidfleet_controller.api.drafts import DraftServicer
from droidfleet_controller.api.errors import Door
from droidfleet_controller.api.executions import ExecutionServicer
from droidfleet_controller.api.fleet import FleetServicer
from droidfleet_controller.api.rollouts import RolloutServicer
from droidfleet_controller.api.schedules import ScheduleServicer
from droidfleet_controller.api.server import ApiServer
from droidfleet_controller.api.tasks import TaskServicer
from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.broker.admission import Admission
from droidfleet_controller.broker.server import EmbeddedBroker
from droidfleet_controller.dispatch.artifacts import Artifacts
from droidfleet_controller.dispatch.cancel import Cancels
from droidfleet_controller.dispatch.handover import Handover
from droidfleet_controller.dispatch.ingest import Ingest
from droidfleet_controller.dispatch.pausing import Pauses
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.reading import Executions
from droidfleet_controller.dispatch.runs import Runs
from droidfleet_controller.dispatch.states import LIVE
from droidfleet_controller.dispatch.sweeper import Sweeper
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.drafts.setup import draft_bounds, opened_model
from droidfleet_controller.drafts.wiring import Drafting, Parts, wired
from droidfleet_controller.fleet.device import DeviceState
from droidfleet_controller.fleet.groups import Groups
from droidfleet_controller.fleet.labels import Labels
from droidfleet_controller.fleet.live import Live
from droidfleet_controller.fleet.registry import MAX_ASKING, Registry
from droidfleet_controller.fleet.targets import Targets
from droidfleet_controller.http import HttpServer
from droidfleet_controller.ids import new_id
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.rollouts.report.service import Reports
from droidfleet_controller.rollouts.service import Rollouts
from droidfleet_controller.rollouts.states import TERMINAL, RolloutState
from droidfleet_controller.schedules.service import Schedules
from droidfleet_controller.schedules.timer import SystemTimer
from droidfleet_controller.settings import ServeSettings
from droidfleet_controller.store import artifacts, executions, lock
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.migrate import migrate
from droidfleet_controller.tasks.library import Library
from droidfleet_controller.tasks.words import load_words
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.credentials import load_credentials
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.clock import Clock, SystemClock
from droidfleet_shared.errors import (
    DroidfleetError,
    PreconditionError,
    UnavailableError,
    first_domain_error,
)
from droidfleet_shared.protocol.effects import EffectWords

log = structlog.get_logger(__name__)

SERVE_FILE = "serve.json"
ARTIFACTS_FOLDER = "artifacts"

MEGABYTE = 1_000_000


async def serve(settings: ServeSettings, *, ready: asyncio.Event | None = None) -> signal.Signals | None:
    """Runs a controller until SIGTERM or SIGINT, which it returns, or cancellation. Sets ``ready`` when all is up.

    The addresses in use, with the ports that the system chose, stand in ``serve.json`` in the data folder.

    Raises:
        DroidfleetError: it cannot start, or cannot go on; the code says why.
    """
    ended_by = None
    try:
        async with AsyncExitStack() as stack:
            controller = Controller(settings, stack, clock=SystemClock(), random=SystemRandom())
            stop = stack.enter_context(process.stop_signals())
            await controller.start()
            if ready is not None:
                ready.set()
            ended_by = await stop
            log.info("controller_stopping")
    except BaseExceptionGroup as group:
        error = first_domain_error(group)
        if error is None:
            raise
        raise error from group
    log.info("controller_stopped")
    return ended_by


class Controller:
    """The parts of one controller. ``stack`` ends in reverse what `start` began."""

    def __init__(self, settings: ServeSettings, stack: AsyncExitStack, *, clock: Clock, random: Random) -> None:
        self._settings = settings
        self._stack = stack
        self._clock = clock
        self._random = random
        self._instance = new_id("c")
        self._metrics = Metrics()
        self._broadcast = Broadcast()
        self._files = ArtifactFiles(settings.data / ARTIFACTS_FOLDER)
        self._broker: EmbeddedBroker | None = None
        self._database: Database
        self._bus: BusLink
        self._registry: Registry
        self._labels: Labels
        self._groups: Groups
        self._targets: Targets
        self._publisher: Publisher
        self._cancels: Cancels
        self._rollouts: Rollouts
        self._schedules: Schedules
        self._group: asyncio.TaskGroup

    async def start(self) -> None:
        """Starts everything, in the order of dependence."""
        settings, stack = self._settings, self._stack
        process.allow_many_files()
        token = process.read_token(settings.api_token_file)
        words = load_words(settings.effect_words)
        credentials = partial(load_credentials, settings.nats_credentials) if settings.nats else lambda: None
        credentials()  # what cannot be read is refused before anything is started
        data_id = stack.enter_context(lock.data_folder(settings.data))
        await self._open_database(data_id)
        self._group = await stack.enter_async_context(asyncio.TaskGroup())
        url = settings.nats or await self._start_broker()
        self._bus = BusLink(
            url, name="droidfleet-controller", clock=self._clock, random=self._random, credentials=credentials
        )
        await self._start_dispatch()
        await self._start_rollouts()
        await self._start_doors(token, words)
        self._metrics.info.labels(version=version("droidfleet")).set(1)
        self._write_serve_file(url)
        log.info("controller_ready", **self._addresses(url))

    async def _run(self, work: Coroutine[object, object, None], name: str) -> None:
        await self._stack.enter_async_context(process.running(self._group, work, name))

    async def _open_database(self, data_id: str) -> None:
        url = self._settings.database or sqlite_url(self._settings.data / sqlite_file.DATABASE_FILE)
        database = self._database = Database(url, observe=self._metrics.transaction_seconds.observe)
        self._stack.push_async_callback(database.close)
        await asyncio.to_thread(migrate, database.engine)
        claim = partial(lock.claim_database, instance=self._instance, data_id=data_id, now=self._clock.now())
        await database.run(claim)
        self._stack.push_async_callback(self._release)

    async def _release(self) -> None:
        with suppress(UnavailableError):
            await self._database.run(partial(lock.release_claim, instance=self._instance))

    async def _keep_claim(self) -> None:
        while True:
            await self._clock.sleep(lock.RENEW_S)
            renew = partial(lock.renew_claim, instance=self._instance, now=self._clock.now())
            try:
                await self._database.run(renew)
            except UnavailableError as error:
                log.warning("claim_not_renewed", code=error.code)

    async def _start_broker(self) -> str:
        broker = self._broker = EmbeddedBroker(
            self._settings.broker_endpoint,
            folder=self._settings.data / "nats",
            program=self._settings.nats_server,
            clock=self._clock,
            random=self._random,
            restarted=self._metrics.broker_restarts.inc,
        )
        self._stack.push_async_callback(broker.stop)
        await broker.start()
        await self._run(broker.run(), "broker")
        return broker.url

    async def _start_dispatch(self) -> None:
        bus, database, clock = self._bus, self._database, self._clock
        registry = self._registry = Registry(
            database=database,
            bus=bus,
            clock=clock,
            heartbeat_s=self._settings.heartbeat_s,
            stored=self._broadcast.events,
        )
        publisher = self._publisher = Publisher(
            bus=bus, database=database, clock=clock, random=self._random, metrics=self._metrics
        )
        handover = Handover(publisher=publisher, broadcast=self._broadcast, metrics=self._metrics)
        ingest = Ingest(
            bus=bus,
            database=database,
            clock=clock,
            random=self._random,
            publisher=publisher,
            broadcast=self._broadcast,
            metrics=self._metrics,
            files=self._files,
            artifact_quota_bytes=self._settings.artifact_quota_mb * MEGABYTE,
        )
        sweeper = Sweeper(
            database=database,
            clock=clock,
            registry=registry,
            publisher=publisher,
            broadcast=self._broadcast,
            metrics=self._metrics,
        )
        self._admission = Admission(bus=bus, database=database, clock=clock, registry=registry, publisher=publisher)
        registry.on_heard(sweeper.heard)
        registry.on_granted(handover)
        await registry.load()
        await self._load_groups()
        await publisher.load()
        await asyncio.to_thread(self._files.sweep, await database.run(artifacts.digests))
        bus.subscribe(subjects.HEARTBEATS_ALL, registry.receive, pending_limit=MAX_ASKING)
        bus.on_connected(self._admission.reconcile)
        await self._run(self._keep_claim(), "claim")
        self._stack.push_async_callback(self._write_what_is_known)
        await self._run(bus.run(), "bus")
        await self._admission.admit()
        await self._run(registry.run(), "fleet")
        await self._run(publisher.run(), "publisher")
        await self._run(ingest.run(), "ingest")
        await self._run(sweeper.run(), "sweeper")

    async def _load_groups(self) -> None:
        database, clock, stored = self._database, self._clock, self._broadcast.events
        labels = self._labels = Labels(database=database, clock=clock, stored=stored)
        groups = self._groups = Groups(database=database, clock=clock, registry=self._registry, stored=stored)
        self._targets = Targets(registry=self._registry, labels=labels, groups=groups)
        await labels.load()
        await groups.load()

    async def _start_rollouts(self) -> None:
        database, clock, metrics = self._database, self._clock, self._metrics
        self._cancels = Cancels(
            database=database, clock=clock, publisher=self._publisher, broadcast=self._broadcast, metrics=metrics
        )
        self._rollouts = Rollouts(
            database=database,
            clock=clock,
            registry=self._registry,
            targets=self._targets,
            publisher=self._publisher,
            broadcast=self._broadcast,
            cancels=self._cancels,
            metrics=metrics,
            retry_budget_percent=self._settings.retry_budget_percent,
        )
        self._schedules = Schedules(
            database=database,
            clock=clock,
            rollouts=self._rollouts,
            timer=SystemTimer(),
            stored=self._broadcast.events,
            decided=lambda state: metrics.schedule_occurrences.labels(state=state.value.lower()).inc(),
        )
        await self._run(self._rollouts.run(), "rollouts")
        await self._run(self._schedules.run(), "schedules")

    async def _write_what_is_known(self) -> None:
        with suppress(UnavailableError):
            await self._registry.write()
            await self._publisher.note()

    async def _start_doors(self, token: str | None, words: EffectWords) -> None:
        settings, database, clock, metrics = self._settings, self._database, self._clock, self._metrics
        reading = Executions(database=database, registry=self._registry, bus=self._bus)
        runs = Runs(
            database=database,
            clock=clock,
            registry=self._registry,
            publisher=self._publisher,
            broadcast=self._broadcast,
        )
        library = Library(database=database, clock=clock, broadcast=self._broadcast, words=words)
        live = Live(registry=self._registry, bus=self._bus)
        drafting = await self._start_drafts(runs=runs, reading=reading, library=library, live=live, words=words)
        tls = (settings.tls_cert, settings.tls_key) if settings.tls_cert and settings.tls_key else None
        self._api = ApiServer(
            settings.listen_endpoint,
            door=Door(metrics=metrics, token=token),
            fleet=FleetServicer(
                registry=self._registry,
                labels=self._labels,
                groups=self._groups,
                targets=self._targets,
                executions=reading,
                database=database,
                broadcast=self._broadcast,
            ),
            devices=DeviceServicer(live=live),
            tasks=TaskServicer(library=library),
            executions=ExecutionServicer(
                runs=runs,
                executions=reading,
                cancels=self._cancels,
                pauses=Pauses(database=database, clock=clock, publisher=self._publisher, broadcast=self._broadcast),
                artifacts=Artifacts(database, self._files),
                broadcast=self._broadcast,
            ),
            rollouts=RolloutServicer(
                rollouts=self._rollouts,
                reports=Reports(database=database, clock=clock, files=self._files, rollouts=self._rollouts),
            ),
            schedules=ScheduleServicer(schedules=self._schedules),
            drafts=DraftServicer(drafts=drafting.drafts, trials=drafting.trials, acceptance=drafting.acceptance),
            admin=self._admin(),
            credentials=process.server_credentials(tls),
        )
        self._http = HttpServer(
            settings.http_endpoint,
            metrics=metrics,
            checks=self._missing,
            collect=self._collect,
            token=token,
            tls=tls,
        )
        self._http.bind()
        await self._run(self._http.run(), "http")
        self._stack.push_async_callback(self._http.stop)
        self._stack.push_async_callback(self._api.stop)
        await self._api.start()

    async def _start_drafts(
        self, *, runs: Runs, reading: Executions, library: Library, live: Live, words: EffectWords
    ) -> Drafting:
        model, facts = await opened_model(self._settings, self._stack, clock=self._clock)
        parts = Parts(
            database=self._database,
            clock=self._clock,
            random=self._random,
            registry=self._registry,
            labels=self._labels,
            groups=self._groups,
            targets=self._targets,
            live=live,
            runs=runs,
            executions=reading,
            cancels=self._cancels,
            broadcast=self._broadcast,
            library=library,
            rollouts=self._rollouts,
            schedules=self._schedules,
            files=self._files,
            artifact_quota_bytes=self._settings.artifact_quota_mb * MEGABYTE,
            words=words,
        )
        drafting = wired(parts, model=model, facts=facts, bounds=draft_bounds(self._settings))
        await self._run(drafting.drafts.run(), "drafts")
        return drafting

    def _admin(self) -> AdminServicer:
        bus, database, clock, registry = self._bus, self._database, self._clock, self._registry
        rebuild = Rebuild(
            bus=bus,
            database=database,
            clock=clock,
            publisher=self._publisher,
            registry=registry,
            heartbeat_s=self._settings.heartbeat_s,
        )
        file = None
        with suppress(PreconditionError):
            file = sqlite_file.database_file(self._settings)
        return AdminServicer(
            rebuild=rebuild,
            checks=Checks(database=database, file=file, files=self._files, bus=bus, clock=clock, registry=registry),
        )

    async def _missing(self) -> Mapping[str, str]:
        missing: dict[str, str] = {}
        if not self._bus.connected:
            failure = self._broker.failure if self._broker else None
            missing["broker"] = f"{failure.code}: {failure.message}" if failure else self._unconnected()
        elif self._admission.missing:
            missing["broker"] = self._admission.missing
        try:
            # A write, however small: a full disk can still be read.
            await self._database.run(partial(lock.renew_claim, instance=self._instance, now=self._clock.now()))
        except DroidfleetError as error:
            missing["database"] = f"{error.code}: {error.message}"
        return missing

    def _unconnected(self) -> str:
        return f"not connected: {self._bus.reason}" if self._bus.reason else "not connected"

    async def _collect(self) -> None:
        counts = self._registry.counts()
        for state in DeviceState:
            self._metrics.devices.labels(state=state.value.lower()).set(counts[state])
        self._metrics.clocks_wrong.set(self._registry.clocks.wrong)
        going_on = self._rollouts.counts()
        for rollout_state in RolloutState:
            if rollout_state not in TERMINAL:
                self._metrics.rollouts.labels(state=rollout_state.value.lower()).set(going_on[rollout_state])
        self._metrics.broker_connected.set(self._bus.connected)
        with suppress(DroidfleetError):
            live = await self._database.run(executions.live_counts)
            for execution_state in LIVE:
                self._metrics.live.labels(state=execution_state.value.lower()).set(live.get(execution_state, 0))

    def _addresses(self, url: str) -> dict[str, str]:
        return {"api": str(self._api.endpoint), "http": str(self._http.endpoint), "nats": url}

    def _write_serve_file(self, url: str) -> None:
        """For the CLI, scripts and tests: which addresses are in use. There only while the controller runs."""
        file = self._settings.data / SERVE_FILE
        content = {"pid": os.getpid(), "version": version("droidfleet"), **self._addresses(url)}
        draft = file.with_suffix(".tmp")
        draft.write_text(json.dumps(content, indent=2) + "\n")
        draft.replace(file)
        self._stack.callback(file.unlink, missing_ok=True)
