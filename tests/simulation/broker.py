"""A broker in memory with what the product uses of NATS: core subjects, streams, republish, direct gets, a consumer.

It keeps the promises of the real one and no others: what was acknowledged to it may be handed out again, a core message
to nobody is gone, and an abrupt end may cost it the newest messages of its streams.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from droidfleet_shared.bus.port import NoRespondersError, SequenceConflictError, StoredMessage
from droidfleet_shared.bus.streams import ConsumerSpec, StreamSpec

if TYPE_CHECKING:
    from simulation.link import SimLink, Subscription


@dataclass(slots=True)
class _Stream:
    """``messages`` by sequence, oldest first; ``last`` of each subject."""

    spec: StreamSpec
    messages: dict[int, StoredMessage] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    newest: int = 0


@dataclass(slots=True)
class _Pull:
    """A waiting pull request of one connection."""

    link: SimLink
    connection: int
    batch: int
    until: float
    answer: Callable[[list[StoredMessage]], None]


@dataclass(slots=True)
class _Consumer:
    """``next``: of the stream's sequences, never handed out; ``pending``: handed out, with when they come again."""

    spec: ConsumerSpec
    next: int = 1
    pending: dict[int, float] = field(default_factory=dict)
    again: deque[int] = field(default_factory=deque)
    done: deque[int] = field(default_factory=lambda: deque(maxlen=64))
    """The newest acknowledged ones: an abrupt end may undo them."""
    pulls: deque[_Pull] = field(default_factory=deque)


class Broker:
    """The broker. `links` are the connections to it; they call it at the moments at which their messages arrive."""

    def __init__(self) -> None:
        self.links: list[SimLink] = []
        self._starts = 1
        """Of the broker: an acknowledgement of what an earlier one handed out is ignored."""
        self._exact: dict[str, list[Subscription]] = {}
        self._wild: list[tuple[list[str], Subscription]] = []
        self._streams: dict[str, _Stream] = {}
        self._consumers: dict[tuple[str, str], _Consumer] = {}
        self._loop = asyncio.get_running_loop()

    # Core subjects.

    def attach(self, subscription: Subscription) -> None:
        """From now on it gets what is published."""
        tokens = subscription.subject.split(".")
        if "*" in tokens:
            self._wild.append((tokens, subscription))
        else:
            self._exact.setdefault(subscription.subject, []).append(subscription)

    def detach(self, subscription: Subscription) -> None:
        """The end of that."""
        self._wild = [entry for entry in self._wild if entry[1] is not subscription]
        known = self._exact.get(subscription.subject, [])
        if subscription in known:
            known.remove(subscription)

    def publish(self, subject: str, data: bytes, *, reply: str = "", headers: Mapping[str, str] | None = None) -> int:
        """Hands a message to everybody who listens; how many those are."""
        heard = list(self._exact.get(subject, ()))
        tokens = subject.split(".")
        heard += [subscription for wanted, subscription in self._wild if _fits(wanted, tokens)]
        for subscription in heard:
            subscription.link.deliver(subscription, subject, data, reply, headers or {})
        return len(heard)

    # Streams.

    def ensure_stream(self, spec: StreamSpec) -> None:
        """Makes it unless it is there."""
        self._streams.setdefault(spec.name, _Stream(spec))

    def ensure_consumer(self, spec: ConsumerSpec) -> None:
        """Makes it unless it is there.

        Raises:
            NoRespondersError: its stream is not there.
        """
        self._stream(spec.stream)
        self._consumers.setdefault((spec.stream, spec.name), _Consumer(spec))

    def store(self, stream: str, subject: str, data: bytes, expected: int | None) -> int:
        """Stores a message, republishes it where the stream says so, and serves who waits for it.

        Raises:
            NoRespondersError: there is no such stream.
            SequenceConflictError: the subject's last message is another one than ``expected``.
        """
        kept = self._stream(stream)
        before = kept.last.get(subject, 0)
        if expected is not None and expected != before:
            raise SequenceConflictError("SEQUENCE_CONFLICT", f"somebody else wrote {subject} meanwhile.")
        kept.newest += 1
        sequence = kept.newest
        if kept.spec.max_msgs_per_subject == 1:
            kept.messages.pop(before, None)
        kept.messages[sequence] = StoredMessage(subject, data, sequence)
        kept.last[subject] = sequence
        if kept.spec.republish_to:
            live = f"{kept.spec.republish_to.partition('.{{')[0]}.{subject.rpartition('.')[2]}"
            headers = {"Nats-Sequence": str(sequence), "Nats-Last-Sequence": str(before)}
            self.publish(live, data, headers=headers)
        for (name, _), consumer in self._consumers.items():
            if name == stream:
                self._serve(consumer)
        return sequence

    def last(self, stream: str, subject: str) -> StoredMessage | None:
        """The last message of a subject.

        Raises:
            NoRespondersError: there is no such stream.
        """
        kept = self._stream(stream)
        return kept.messages.get(kept.last.get(subject, 0))

    def pull(
        self,
        spec: ConsumerSpec,
        link: SimLink,
        *,
        batch: int,
        wait_s: float,
        answer: Callable[[list[StoredMessage]], None],
    ) -> None:
        """Answers with messages as soon as there are some, or with none after ``wait_s``.

        Raises:
            NoRespondersError: there is no such consumer.
        """
        consumer = self._consumers.get((spec.stream, spec.name))
        if consumer is None:
            raise NoRespondersError("CONSUMER_MISSING", f"the consumer {spec.name} does not exist.")
        pull = _Pull(link, link.connection, batch, self._loop.time() + wait_s, answer)
        consumer.pulls.append(pull)
        self._serve(consumer)
        if pull in consumer.pulls:
            self._loop.call_at(pull.until, self._expire, consumer, pull)

    def ack(self, stream: str, tokens: Sequence[str]) -> None:
        """Takes acknowledgements; those of messages that were handed out again meanwhile count as well."""
        for token in tokens:
            name, start, sequence = token.split("/")
            consumer = self._consumers.get((stream, name))
            if consumer is None or int(start) != self._starts:
                continue
            if consumer.pending.pop(int(sequence), None) is not None:
                consumer.done.append(int(sequence))

    def _stream(self, name: str) -> _Stream:
        kept = self._streams.get(name)
        if kept is None:
            raise NoRespondersError("NO_RESPONDERS", f"there is no stream {name}.")
        return kept

    def _expire(self, consumer: _Consumer, pull: _Pull) -> None:
        if pull in consumer.pulls:
            consumer.pulls.remove(pull)
            pull.answer([])

    def _serve(self, consumer: _Consumer) -> None:
        kept = self._streams.get(consumer.spec.stream)
        while consumer.pulls and kept is not None:
            pull = consumer.pulls[0]
            if not pull.link.alive(pull.connection):
                consumer.pulls.popleft()
                continue
            sequences: list[int] = []
            while consumer.again and len(sequences) < pull.batch:
                sequence = consumer.again.popleft()
                if sequence in kept.messages:
                    sequences.append(sequence)
            while consumer.next <= kept.newest and len(sequences) < pull.batch:
                if consumer.next in kept.messages:
                    sequences.append(consumer.next)
                consumer.next += 1
            if not sequences:
                return
            consumer.pulls.popleft()
            due = self._loop.time() + consumer.spec.ack_wait_s
            consumer.pending.update(dict.fromkeys(sequences, due))
            self._loop.call_at(due, self._redeliver, consumer, due)
            pull.answer(
                [
                    StoredMessage(
                        message.subject, message.data, sequence, f"{consumer.spec.name}/{self._starts}/{sequence}"
                    )
                    for sequence in sequences
                    for message in (kept.messages[sequence],)
                ]
            )

    def _redeliver(self, consumer: _Consumer, due: float) -> None:
        late = [sequence for sequence, at in consumer.pending.items() if at == due]
        for sequence in late:
            del consumer.pending[sequence]
        consumer.again.extend(late)
        if late:
            self._serve(consumer)

    # Faults.

    def crash(self, *, lose: int, undo_acks: bool) -> None:
        """An abrupt end and a new start: connections break, the newest ``lose`` messages of each stream are gone, and
        what was acknowledged lately comes again."""
        self._break()
        for name, kept in self._streams.items():
            for sequence in sorted(kept.messages)[len(kept.messages) - lose :] if lose else ():
                message = kept.messages.pop(sequence)
                older = [each for each, other in kept.messages.items() if other.subject == message.subject]
                kept.last[message.subject] = max(older, default=0)
            kept.newest = max(kept.messages, default=0) if lose else kept.newest
            for (stream, _), consumer in self._consumers.items():
                if stream != name:
                    continue
                again = sorted({*consumer.pending, *consumer.again, *(consumer.done if undo_acks else ())})
                consumer.pending.clear()
                consumer.pulls.clear()
                consumer.done.clear()
                consumer.next = min(consumer.next, kept.newest + 1)
                consumer.again = deque(sequence for sequence in again if sequence < consumer.next)

    def wipe(self) -> None:
        """The disk is new: no streams, no consumers."""
        self._break()
        self._streams.clear()
        self._consumers.clear()

    def _break(self) -> None:
        self._starts += 1
        for link in self.links:
            link.cut()


def _fits(wanted: Sequence[str], tokens: Sequence[str]) -> bool:
    return len(wanted) == len(tokens) and all(one in ("*", other) for one, other in zip(wanted, tokens, strict=True))
