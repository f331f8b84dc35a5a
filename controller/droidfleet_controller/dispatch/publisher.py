"""Brings desired-state documents to the broker: the newest of each agent, one at a time for each agent.

A document that could not be published stays unpublished in the database and is tried again; an older one that a newer
one overtook is never sent. The broker's copy is only a copy: when the broker has lost it, it is written again from the
database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random

import structlog
from sqlalchemy import Connection

from droidfleet_controller.dispatch import assign
from droidfleet_controller.dispatch.window import Document
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.store import documents
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.documents import Publication
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import BadMessageError, DesiredState
from droidfleet_shared.bus.port import Bus, BusUnavailableError, PayloadTooLargeError, SequenceConflictError
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DroidfleetError, UnavailableError

log = structlog.get_logger(__name__)

WORKERS = 64
"""Publications under way at a time: enough to keep a broker on its disk busy."""

PUBLISH_TIMEOUT_S = 5.0
"""A broker that syncs every message answers in milliseconds; one under a storm of reconnects in seconds."""

MAX_CONFLICTS = 3
"""Tries to write over what another writer left, before the document waits for the next round."""

NOTE_DELAY_S = 0.2
"""Confirmations are gathered for this long and noted in one transaction; losing some costs one needless conflict."""

RETRY_BASE_S = 0.5
RETRY_CAP_S = 30.0

PAGE = 500
"""Documents that are made ready at a time when many have to be published again."""


class Publisher:
    """The one writer of the DESIRED stream."""

    def __init__(self, *, bus: Bus, database: Database, clock: Clock, random: Random, metrics: Metrics) -> None:
        self._bus = bus
        self._database = database
        self._clock = clock
        self._random = random
        self._metrics = metrics
        self._newest: dict[str, Document] = {}
        self._line: asyncio.Queue[str] = asyncio.Queue()  # bounded: an agent is in it at most once
        self._busy: set[str] = set()
        self._sequences: dict[str, int] = {}
        self.epoch = ""
        """Of the database, once `load` has read it."""
        self._confirmed: dict[str, Publication] = {}
        self._note = asyncio.Event()
        self._behind = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    async def load(self) -> None:
        """Reads which database this is and what the broker last confirmed, once at the start."""
        self.epoch = await self._database.run(documents.epoch)
        publications = await self._database.run(documents.publications)
        self._sequences = {each.agent: each.sequence for each in publications}

    def submit(self, made: Iterable[Document]) -> None:
        """Publishes documents as soon as may be; of two for one agent the newer."""
        for document in made:
            waiting = self._newest.get(document.agent)
            if waiting is not None and waiting.generation >= document.generation:
                continue
            self._newest[document.agent] = document
            if document.agent not in self._busy:
                self._busy.add(document.agent)
                self._idle.clear()
                self._line.put_nowait(document.agent)

    async def run(self) -> None:
        """Publishes until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(WORKERS):
                group.create_task(self._work(), name=f"publisher {number}")
            group.create_task(self._note_confirmed(), name="publisher notes")
            group.create_task(self._catch_up(), name="publisher catch-up")

    async def reconcile(self) -> None:
        """To be called after every connect, with the streams in place: finds out whether the broker lost documents.

        Raises:
            BusUnavailableError, UnavailableError
        """
        await self.note()
        if self._sequences:
            agent, newest = max(self._sequences.items(), key=lambda item: item[1])
            stored = await self._bus.get_last(
                subjects.DESIRED_STREAM, subjects.desired(agent), timeout_s=PUBLISH_TIMEOUT_S
            )
            if newest and (stored is None or stored.sequence < newest):
                log.warning("desired_stream_lost", documents=len(self._sequences))
                await self._database.run(documents.forget_publications)
                self._sequences.clear()
        self._behind.set()

    async def republish(self) -> dict[str, int]:
        """Publishes every document once more, with the streams in place. Returns the generation of each agent's, which
        the database shows as published when the broker has it.

        Raises:
            BusUnavailableError, UnavailableError
        """
        await self.reconcile()
        wanted = await self._database.run(documents.publish_again)
        self._behind.set()
        return wanted

    async def note(self) -> None:
        """Notes in the database what the broker has confirmed."""
        confirmed, self._confirmed = self._confirmed, {}
        if confirmed:
            await self._database.run(lambda connection: documents.published(connection, list(confirmed.values())))

    async def _work(self) -> None:
        while True:
            agent = await self._line.get()
            document = self._newest.pop(agent)
            try:
                await self._publish(document)
            except BusUnavailableError as error:
                self._metrics.documents.labels(outcome="failed").inc()
                log.info("document_unpublished", agent=agent, generation=document.generation, code=error.code)
                self._behind.set()
            except DroidfleetError as error:
                self._metrics.documents.labels(outcome="failed").inc()
                log.error(
                    "document_refused",
                    agent=agent,
                    generation=document.generation,
                    code=error.code,
                    error=error.message,
                )
                if not isinstance(error, PayloadTooLargeError):
                    self._behind.set()
            if agent in self._newest:
                self._line.put_nowait(agent)
            else:
                self._busy.discard(agent)
                if not self._busy:
                    self._idle.set()

    async def _publish(self, document: Document) -> None:
        agent = document.agent
        for _ in range(MAX_CONFLICTS):
            try:
                with self._metrics.publish_seconds.time():
                    sequence = await self._bus.js_publish(
                        subjects.desired(agent),
                        document.encode(self._clock.now(), epoch=self.epoch),
                        stream=subjects.DESIRED_STREAM,
                        expected_last_subject_sequence=self._sequences.get(agent, 0),
                        timeout_s=PUBLISH_TIMEOUT_S,
                    )
            except SequenceConflictError:
                self._metrics.documents.labels(outcome="conflict").inc()
                if await self._overtaken(document):
                    return
                continue
            self._metrics.documents.labels(outcome="published").inc()
            self._sequences[agent] = sequence
            self._confirmed[agent] = Publication(agent, document.generation, sequence)
            self._note.set()
            return
        self._behind.set()

    async def _overtaken(self, document: Document) -> bool:
        """Looks at what stands on the broker instead of what was expected. True: a newer document, ours must grow."""
        agent = document.agent
        stored = await self._bus.get_last(subjects.DESIRED_STREAM, subjects.desired(agent), timeout_s=PUBLISH_TIMEOUT_S)
        self._sequences[agent] = 0 if stored is None else stored.sequence
        generation = 0 if stored is None else self._generation(stored.data)
        log.warning(
            "document_conflict",
            agent=agent,
            ours=document.generation,
            theirs=generation,
            sequence=self._sequences[agent],
        )
        if generation <= document.generation:
            return False
        await self._database.run(lambda connection: documents.raise_to(connection, agent, generation + 1))
        self._behind.set()
        return True

    def _generation(self, data: bytes) -> int:
        """Of a document of this database; 0 for any other, which ours replaces."""
        try:
            theirs = DesiredState.decode(data)
        except BadMessageError:
            return 0
        return theirs.generation if theirs.epoch == self.epoch else 0

    async def _note_confirmed(self) -> None:
        while True:
            await self._note.wait()
            self._note.clear()
            await self._clock.sleep(NOTE_DELAY_S)
            try:
                await self.note()
            except UnavailableError as error:
                log.warning("publications_unnoted", code=error.code)

    async def _catch_up(self) -> None:
        attempt = 0
        while True:
            await self._behind.wait()
            self._behind.clear()
            if not self._bus.connected:
                attempt = 0  # the next connect sets it again
                continue
            try:
                published = await self._publish_all()
            except UnavailableError as error:
                log.warning("catch_up_failed", code=error.code)
                published = False
                self._behind.set()
            attempt = 0 if published else attempt + 1
            if attempt:
                await self._clock.sleep(self._random.uniform(0, min(RETRY_CAP_S, RETRY_BASE_S * 2**attempt)))

    async def _publish_all(self) -> bool:
        """Publishes what the database has and the broker lacks; whether all of it went out."""
        await self.note()
        after = ""
        while True:
            start = after

            def take(connection: Connection, start: str = start) -> list[Document]:
                return assign.current(connection, documents.unpublished(connection, after=start, limit=PAGE))

            page = await self._database.run(take)
            if not page:
                return not self._behind.is_set()
            log.info("documents_republished", count=len(page))
            self.submit(page)
            after = max(document.agent for document in page)
            await self._idle.wait()
