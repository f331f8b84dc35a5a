"""The values of one run: the inputs it was given, and the secrets among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from droidfleet_shared.protocol.result import OutputValue
from droidfleet_shared.protocol.steps import StepBase
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.values import holds_reference, input_texts, resolve_step, secret_values

StepT = TypeVar("StepT", bound=StepBase)


class RunValues:
    """Inputs never change during a run; outputs are handed in."""

    def __init__(self, task: TaskTemplate) -> None:
        self._inputs = input_texts(task)
        self.secrets = secret_values(task)
        self._secret_inputs = {
            name: self._inputs[name]
            for name, declared in task.inputs.items()
            if declared.type == "secret" and self._inputs.get(name)
        }
        self._resolves: dict[str, bool] = {}

    @property
    def has_secrets(self) -> bool:
        """Whether a secret was given, however short."""
        return bool(self._secret_inputs)

    def resolve(self, step: StepT, outputs: Mapping[str, OutputValue]) -> StepT:
        """The step as it is meant now. What holds no reference is looked at once in a run.

        Raises:
            MissingValueError, UnfitValueError.
        """
        resolves = self._resolves.get(step.id)
        if resolves is None:
            resolves = self._resolves[step.id] = holds_reference(step)
        return resolve_step(step, inputs=self._inputs, outputs=outputs) if resolves else step

    def secrets_in(self, step: StepBase) -> tuple[str, ...]:
        """The secrets that the step types. References to secrets stand nowhere but in the `value` of an INPUT."""
        value = getattr(step, "value", None)
        if not self._secret_inputs or not isinstance(value, str):
            return ()
        return tuple(secret for name, secret in self._secret_inputs.items() if f"${{inputs.{name}}}" in value)
