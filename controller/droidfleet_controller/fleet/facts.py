"""What a query may ask of a phone beside its labels: facts that its agent tells. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from droidfleet_controller.fleet.device import Device, DeviceState
from droidfleet_controller.fleet.query import Facts

CAPABILITY = "capability."
"""A key of this and a capability is there on the phones whose agents have it: ``capability.vision``."""

StateOf = Callable[[Device], DeviceState]
Read = Callable[[Device, StateOf], str]

BUILT_IN: Mapping[str, Read] = {
    "name": lambda device, _: device.name,
    "serial": lambda device, _: device.heartbeat.serial,
    "model": lambda device, _: device.heartbeat.model,
    "android": lambda device, _: device.heartbeat.android,
    "version": lambda device, _: device.heartbeat.version,
    "host": lambda device, _: device.heartbeat.host,
    "state": lambda device, state_of: state_word(state_of(device)),
    "battery": lambda device, _: _number(device.heartbeat.battery_percent),
}
"""Keys that no label can have, and how to read them; the empty text: not known now."""

VOLATILE = frozenset({"battery", "state"})
"""What changes while nothing happens to the fleet: with each execution, and by itself."""


def is_built_in(key: str) -> bool:
    """Whether the key means a fact, so that no label can have it."""
    return key in BUILT_IN or key.startswith(CAPABILITY)


def state_word(state: DeviceState) -> str:
    """A state as queries spell it: ``phone-offline``."""
    return state.value.lower().replace("_", "-")


class FactReader:
    """Reads those facts of phones that ``keys`` ask for, and no others: a fleet is asked in one go."""

    def __init__(self, keys: Collection[str], *, state_of: StateOf) -> None:
        self._state_of = state_of
        self._built_in = [(key, BUILT_IN[key]) for key in keys if key in BUILT_IN]
        self._capabilities = any(key.startswith(CAPABILITY) for key in keys)

    def facts(self, device: Device, labels: Mapping[str, str]) -> Facts:
        """The labels, and the built-in facts that are known."""
        if not self._built_in and not self._capabilities:
            return labels
        found = dict(labels)
        for key, read in self._built_in:
            if value := read(device, self._state_of):
                found[key] = value
        if self._capabilities:
            found.update(dict.fromkeys(capability_keys(device), ""))
        return found


def capability_keys(device: Device) -> Iterator[str]:
    """The keys of what its agent can do."""
    return (f"{CAPABILITY}{word}" for word in device.heartbeat.capabilities)


def steady(device: Device) -> tuple[object, ...]:
    """What changes only when something happened to the phone or its agent; equal while nothing did."""
    beat = device.heartbeat
    return beat.serial, beat.model, beat.android, beat.version, beat.host, beat.capabilities


def values(keys: Iterable[str], device: Device, state_of: StateOf) -> tuple[str, ...]:
    """The values of built-in facts."""
    return tuple(BUILT_IN[key](device, state_of) for key in keys)


def _number(percent: int | None) -> str:
    return "" if percent is None else str(percent)
