"""The values that a rollout's document gives to its task: for all phones, and for single ones. Pure.

They are kept beside the rollout (`store.run_values`): one entry for all phones, and one for each phone that has values
of its own, which go over the others. The rollout keeps the document with `HIDDEN` in the places of secrets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.tasks.values import RunValues
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.secrets import HIDDEN

FOR_ALL = ""
"""Where the values for all phones are kept, behind the rollout's id."""

Kept = Mapping[str, RunValues]
"""Values by where they are kept: `FOR_ALL`, or `own_place`."""


def own_places(spec: RolloutSpec) -> dict[str, str]:
    """The phones with values of their own, and behind the rollout's id where those are kept."""
    return {device: f".{number}" for number, device in enumerate(spec.device_inputs, 1)}


def values_id(rollout_id: str, spec: RolloutSpec, own: Mapping[str, str], device: str) -> str:
    """The `run_values` of a phone; empty: none. ``own``: `own_places` of the document."""
    if device in own:
        return rollout_id + own[device]
    return rollout_id if spec.inputs or spec.random_seed is not None else ""


def split(spec: RolloutSpec, secret: frozenset[str]) -> tuple[RolloutSpec, dict[str, RunValues]]:
    """The document without the values of the inputs ``secret``, and everything that has to be kept."""
    kept: dict[str, RunValues] = {}
    if spec.inputs or spec.random_seed is not None:
        kept[FOR_ALL] = _values(spec, {}).split(secret)
    for device, place in own_places(spec).items():
        kept[place] = _values(spec, spec.device_inputs[device]).split(secret)
    shown = spec.model_copy(
        update={
            "inputs": _hidden(spec.inputs, secret),
            "device_inputs": {device: _hidden(own, secret) for device, own in spec.device_inputs.items()},
        }
    )
    return shown, kept


def joined(shown: RolloutSpec, kept: Kept) -> RolloutSpec:
    """The document with its secrets, as `split` took them out."""
    places = own_places(shown)
    none = RunValues()
    return shown.model_copy(
        update={
            "inputs": _revealed(shown.inputs, kept.get(FOR_ALL, none)),
            "device_inputs": {
                device: _revealed(own, kept.get(places[device], none)) for device, own in shown.device_inputs.items()
            },
        }
    )


def digest(spec: RolloutSpec) -> str:
    """Stands for everything that was asked for but the values: a short secret could be found by trying."""
    asked = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    asked["inputs"] = sorted(spec.inputs)
    asked["deviceInputs"] = {device: sorted(own) for device, own in spec.device_inputs.items()}
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def equal(stored: Kept, asked: Kept) -> bool:
    """Whether both give the same values; a secret that is forgotten equals every other."""
    return stored.keys() == asked.keys() and all(stored[place].equals(asked[place]) for place in stored)


def _values(spec: RolloutSpec, own: Mapping[str, Json]) -> RunValues:
    return RunValues(values={**spec.inputs, **own}, random_seed=spec.random_seed)


def _hidden(values: Mapping[str, Json], secret: frozenset[str]) -> dict[str, Json]:
    return {name: HIDDEN if name in secret else value for name, value in values.items()}


def _revealed(values: Mapping[str, Json], kept: RunValues) -> dict[str, Json]:
    return {name: kept.secrets.get(name, value) for name, value in values.items()}
