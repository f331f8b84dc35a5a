"""How far each agent's desired-state document is written and published, and the receipts that it still has to carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, insert, literal_column, select, tuple_, update

from droidfleet_controller.store.schema import agent_documents, database_identity, devices, receipts
from droidfleet_controller.store.sql import KeyedRows, ManyRows, chunks
from droidfleet_shared.bus.messages import ExecutionRef


@dataclass(frozen=True, slots=True)
class Publication:
    """An agent's document on the broker: which generation, and its sequence in the stream (0: none)."""

    agent: str
    generation: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Head:
    """What an agent's document bears: its generation, and the host that it is for (empty: any)."""

    generation: int
    host_id: str


def epoch(connection: Connection) -> str:
    """The random id of this database. Generations of another one mean nothing to it."""
    drawn: str = connection.execute(select(database_identity.c.epoch)).scalar_one()
    return drawn


def bump(connection: Connection, agents: Sequence[str]) -> dict[str, Head]:
    """The next generation of each agent's document, written. A first one is for the host that holds the name."""
    known = heads(connection, agents)
    fresh = [agent for agent in agents if agent not in known]
    hosts = _hosts(connection, fresh) if fresh else {}
    bumped = {agent: Head(head.generation + 1, head.host_id) for agent, head in known.items()}
    bumped |= {agent: Head(1, hosts.get(agent, "")) for agent in fresh}
    if known:
        connection.execute(_GROW, [{"key": agent, "next": bumped[agent].generation} for agent in known])
    if fresh:
        unpublished = {"generation": 1, "published_generation": 0, "sequence": 0}
        rows = [{"agent": agent, "host_id": bumped[agent].host_id, **unpublished} for agent in fresh]
        connection.execute(insert(agent_documents), rows)
    return bumped


def bind(connection: Connection, hosts: Mapping[str, str]) -> None:
    """From now on the documents of these agents are for these hosts. Agents without one are left alone."""
    if hosts:
        connection.execute(_BIND, [{"key": agent, "host": host_id} for agent, host_id in hosts.items()])


def raise_to(connection: Connection, agent: str, generation: int) -> None:
    """Makes the agent's generation at least ``generation``: somebody has seen that one."""
    bump(connection, [agent])
    connection.execute(
        update(agent_documents)
        .where(agent_documents.c.agent == agent, agent_documents.c.generation < generation)
        .values(generation=generation)
    )


def published(connection: Connection, done: Sequence[Publication]) -> None:
    """Notes what the broker has confirmed."""
    connection.execute(
        _PUBLISHED,
        [{"key": each.agent, "done": each.generation, "at": each.sequence} for each in done],
    )


def unpublished(connection: Connection, *, after: str, limit: int) -> list[str]:
    """Agents by name after ``after`` whose newest document the broker has not confirmed."""
    query = (
        select(agent_documents.c.agent)
        .where(
            agent_documents.c.agent > after,
            agent_documents.c.generation > agent_documents.c.published_generation,
        )
        .order_by(agent_documents.c.agent)
        .limit(limit)
    )
    return list(connection.execute(query).scalars())


def publications(connection: Connection) -> list[Publication]:
    """All documents as the broker last confirmed them."""
    query = select(
        agent_documents.c.agent, agent_documents.c.published_generation, agent_documents.c.sequence
    ).order_by(agent_documents.c.sequence)
    return [Publication(row.agent, row.published_generation, row.sequence) for row in connection.execute(query)]


def forget_publications(connection: Connection) -> None:
    """Every document has to be published again: the broker has lost them."""
    connection.execute(update(agent_documents).values(published_generation=0, sequence=0))


def publish_again(connection: Connection) -> dict[str, int]:
    """Every document is published once more, whatever the broker has. Returns the generation of each agent's."""
    connection.execute(update(agent_documents).values(published_generation=0))
    query = select(agent_documents.c.agent, agent_documents.c.generation)
    return {row.agent: row.generation for row in connection.execute(query)}


def heads(connection: Connection, agents: Iterable[str]) -> dict[str, Head]:
    """What each agent's document bears; agents without one are left out."""
    found: dict[str, Head] = {}
    for some in chunks(agents):
        for row in connection.execute(_HEADS, {"agents": some}):
            found[row.agent] = Head(row.generation, row.host_id)
    return found


def _hosts(connection: Connection, agents: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for some in chunks(agents):
        found.update((row.name, row.host_id) for row in connection.execute(_HOSTS, {"agents": some}))
    return found


def owe_receipts(connection: Connection, references: Mapping[str, Iterable[ExecutionRef]]) -> None:
    """The documents of these agents list these attempts as recorded, until they have applied one that does."""
    wanted = {
        (agent, reference.execution_id, reference.attempt) for agent, some in references.items() for reference in some
    }
    known = {(row.agent, row.execution_id, row.attempt) for row in _KNOWN.read(connection, wanted)}
    _OWE.write(connection, [(*each, 0) for each in sorted(wanted - known)])


def owed(connection: Connection, heads_of: Mapping[str, Head], *, limit: int) -> dict[str, tuple[ExecutionRef, ...]]:
    """The receipts, oldest first and ``limit`` at most, that each agent's document of this generation carries."""
    found: dict[str, list[ExecutionRef]] = {}
    marks: list[dict[str, int]] = []
    for some in chunks(heads_of):
        for row in connection.execute(_OWED, {"agents": some}):
            carried = found.setdefault(row.agent, [])
            if len(carried) == limit:
                continue
            carried.append(ExecutionRef(execution_id=row.execution_id, attempt=row.attempt))
            if row.generation == 0:
                marks.append({"key": row.number, "first": heads_of[row.agent].generation})
    if marks:
        connection.execute(_MARK, marks)
    return {agent: tuple(carried) for agent, carried in found.items()}


def settle_receipts(connection: Connection, applied: Mapping[str, int]) -> set[str]:
    """Drops the receipts that agents have seen: ``applied`` is the generation that each one has applied.

    Returns the agents that are owed more than their last document could carry.
    """
    _SETTLE.write(connection, list(applied.items()))
    waiting: set[str] = set()
    for some in chunks(applied):
        waiting.update(connection.execute(_WAITING, {"agents": some}).scalars())
    return waiting


_WAITING = (
    select(receipts.c.agent)
    .where(receipts.c.agent.in_(bindparam("agents", expanding=True)), receipts.c.generation == 0)
    .distinct()
)
_RECEIPT = (receipts.c.agent, receipts.c.execution_id, receipts.c.attempt)
_KNOWN = KeyedRows(select(*_RECEIPT), tuple_(*_RECEIPT))
_OWE = ManyRows(insert(receipts), ("agent", "execution_id", "attempt", "generation"))
_SETTLE = ManyRows(
    delete(receipts).where(
        receipts.c.agent == bindparam("key"),
        receipts.c.generation > literal_column("0"),
        receipts.c.generation <= bindparam("applied"),
    ),
    ("key", "applied"),
)
_HEADS = select(agent_documents.c.agent, agent_documents.c.generation, agent_documents.c.host_id).where(
    agent_documents.c.agent.in_(bindparam("agents", expanding=True))
)
_HOSTS = select(devices.c.name, devices.c.host_id).where(devices.c.name.in_(bindparam("agents", expanding=True)))
_BIND = update(agent_documents).where(agent_documents.c.agent == bindparam("key")).values(host_id=bindparam("host"))
_OWED = select(receipts).where(receipts.c.agent.in_(bindparam("agents", expanding=True))).order_by(receipts.c.number)
_GROW = update(agent_documents).where(agent_documents.c.agent == bindparam("key")).values(generation=bindparam("next"))
_PUBLISHED = (
    update(agent_documents)
    .where(agent_documents.c.agent == bindparam("key"))
    .values(published_generation=bindparam("done"), sequence=bindparam("at"))
)
_MARK = update(receipts).where(receipts.c.number == bindparam("key")).values(generation=bindparam("first"))
