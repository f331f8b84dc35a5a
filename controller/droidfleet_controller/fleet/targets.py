"""Who is meant: from devices, a group or a query to names of phones, now; and word of it when that may have changed.

Owns no records: it asks the registry, the labels and the groups, all of them in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from droidfleet_controller.fleet import advice
from droidfleet_controller.fleet.device import UP, Device, DeviceState
from droidfleet_controller.fleet.facts import VOLATILE, FactReader, StateOf, capability_keys, steady, values
from droidfleet_controller.fleet.group import Group
from droidfleet_controller.fleet.groups import Groups
from droidfleet_controller.fleet.labels import Labels
from droidfleet_controller.fleet.query import Facts, Query, parse
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.rollouts.spec import Target
from droidfleet_shared.errors import InvalidInputError


class Targets:
    """The answers; none of them waits for anything."""

    def __init__(self, *, registry: Registry, labels: Labels, groups: Groups) -> None:
        self._registry = registry
        self._labels = labels
        self._groups = groups
        self._changed: list[Callable[[], None]] = []
        self._seen: dict[str, tuple[object, ...]] = {}
        self._asked: set[str] = set()
        registry.on_heard(self._heard)
        registry.on_presence(self._tell)
        labels.on_changed(self._tell)
        groups.on_changed(self._tell)

    def on_changed(self, changed: Callable[[], None]) -> None:
        """Calls ``changed`` when the answer to anything here may have changed: labels, groups, a new phone, one that
        came or went, or a fact of one. Battery and state, which change all the time, count from when a query that asks
        for them was given to `matches`."""
        self._changed.append(changed)

    def members(self, target: Target) -> list[str]:
        """The phones that are meant: as they are listed, without repetitions; of a group or a query, by name.

        Raises:
            InvalidInputError: ``BAD_QUERY``, ``NO_MATCH``, ``EMPTY_GROUP``, with what to change.
            NotFoundError: ``GROUP_NOT_FOUND``, ``DEVICE_NOT_FOUND``.
        """
        if target.devices is not None:
            self._registry.require(target.devices)
            return list(dict.fromkeys(target.devices))
        found = self._found(target, self._state)
        if found:
            return found
        hint = " ".join(self.notes(target))
        if target.group is None:
            raise InvalidInputError("NO_MATCH", f"no phone matches the query: {target.query}", hint=hint)
        group = self._groups.get(target.group)
        what = f"no phone matches its query: {group.query}" if group.query is not None else "it lists no phones."
        raise InvalidInputError("EMPTY_GROUP", f"the group {target.group!r} is empty; {what}", hint=hint)

    def matches(self, target: Target) -> frozenset[str]:
        """The phones that are meant now, of which there may be none; again and again, while they work on what they
        were meant for: a busy phone counts as online.

        Raises:
            InvalidInputError: ``BAD_QUERY``.
            NotFoundError: ``GROUP_NOT_FOUND``: the group is gone.
        """
        query = self._query(target)
        if query is not None:
            self._asked.update(query.keys & VOLATILE)
        return frozenset(self._found(target, self._rested))

    def matching(self, query: str) -> list[str]:
        """The phones that match a query, by name.

        Raises:
            InvalidInputError: ``BAD_QUERY``.
        """
        return self._matching(parse(query), self._state)

    def offline(self) -> Container[str]:
        """The phones that cannot work now, as they are when it is asked; a name that nobody has is one of them."""
        return _Offline(self._registry)

    def notes(self, target: Target) -> list[str]:
        """What is odd about a target, as sentences: keys that no phone has, and why nobody matches."""
        query = self._query(target)
        if query is None:
            if target.group is None or self._groups.get(target.group).devices:
                return []
            return [f"Add phones to it with: droidfleet group add {target.group} NAME"]
        capabilities = {key for device in self._registry.known.values() for key in capability_keys(device)}
        sentences = advice.unknown_keys(query, self._labels.keys().keys() | capabilities)
        if not sentences and not self._matching(query, self._state):
            sentences = advice.why_nothing(query, [facts for _, facts in self._facts(query, self._state)])
        return sentences

    def _found(self, target: Target, state_of: StateOf) -> list[str]:
        query = self._query(target)
        if query is not None:
            return self._matching(query, state_of)
        names = target.devices if target.devices is not None else self._group(target).devices
        # A database that lost devices keeps the groups that list them.
        return [name for name in names if name in self._registry.known]

    def _query(self, target: Target) -> Query | None:
        if target.query is not None:
            return parse(target.query)
        if target.group is None:
            return None
        query = self._group(target).query
        return parse(query) if query is not None else None

    def _group(self, target: Target) -> Group:
        return self._groups.get(target.group or "")

    def _matching(self, query: Query, state_of: StateOf) -> list[str]:
        return sorted(name for name, facts in self._facts(query, state_of) if query.matches(facts))

    def _facts(self, query: Query, state_of: StateOf) -> Iterator[tuple[str, Facts]]:
        reader = FactReader(query.keys, state_of=state_of)
        for name, device in self._registry.known.items():
            yield name, reader.facts(device, self._labels.of(name))

    def _state(self, device: Device) -> DeviceState:
        """The state now; as it was last heard, while silence says nothing about the phone."""
        return device.said if _may_be_up(self._registry, device) else self._registry.state(device)

    def _rested(self, device: Device) -> DeviceState:
        """The state as it is when the phone has nothing to do."""
        state = self._state(device)
        return DeviceState.ONLINE if state is DeviceState.BUSY else state

    def _heard(self, device: Device, _back: bool) -> None:
        seen = (self._registry.state(device) in UP, steady(device), values(sorted(self._asked), device, self._rested))
        if self._seen.get(device.name) != seen:
            self._seen[device.name] = seen
            self._tell()

    def _tell(self) -> None:
        for tell in self._changed:
            tell()


class _Offline(Container[str]):
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __contains__(self, name: object) -> bool:
        device = self._registry.known.get(name) if isinstance(name, str) else None
        if device is None:
            return True
        return self._registry.state(device) not in UP and not _may_be_up(self._registry, device)


def _may_be_up(registry: Registry, device: Device) -> bool:
    """Whether a device that is OFFLINE was only not heard for a downtime of the controller or the broker."""
    offline = registry.state(device) is DeviceState.OFFLINE
    return offline and not device.heartbeat.leaving and not registry.silent(device.name)
