"""The port of a language model that can call tools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_designer.conversation import Message, Turn
from droidfleet_shared.clock import Deadline
from droidfleet_shared.errors import DeniedError, InvalidInputError, UnavailableError


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it. ``parameters``: a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]


class ModelBusyError(UnavailableError):
    """``MODEL_BUSY``: too many requests (429), or overloaded. ``retry_after_s``: as the server asks; 0: it does not."""

    def __init__(self, message: str, *, hint: str = "", retry_after_s: float = 0.0) -> None:
        super().__init__("MODEL_BUSY", message, hint=hint)
        self.retry_after_s = retry_after_s


class ModelUnavailableError(UnavailableError):
    """``MODEL_UNAVAILABLE``: no connection, no answer in time, a broken stream, or an error of the server (5xx)."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__("MODEL_UNAVAILABLE", message, hint=hint)


class ModelDeniedError(DeniedError):
    """``MODEL_DENIED``: the key is wrong, out of money, or not for this model. Asking again does not help."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__("MODEL_DENIED", message, hint=hint)


class ModelRefusedError(InvalidInputError):
    """``MODEL_REFUSED_REQUEST``: the server does not take this conversation (another 4xx). ``too_long``: it is longer
    than the model reads."""

    def __init__(self, message: str, *, hint: str = "", too_long: bool = False) -> None:
        super().__init__("MODEL_REFUSED_REQUEST", message, hint=hint)
        self.too_long = too_long


class Model(ABC):
    """Contract: one request, one turn. It is never repeated inside: who asks decides that."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The model's name, for people."""

    @property
    @abstractmethod
    def sees(self) -> bool:
        """Whether it may be shown pictures."""

    @abstractmethod
    async def answer(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec],
        max_output_tokens: int,
        deadline: Deadline,
        heard: Callable[[str], None],
    ) -> Turn:
        """The model's next turn.

        ``heard`` is called with each piece of text as it arrives; it must not wait. Calls are passed on as they came,
        also when they are cut or no JSON.

        Raises:
            ModelBusyError, ModelUnavailableError: it may work later.
            ModelDeniedError, ModelRefusedError: it will not, like this.
        """

    async def close(self) -> None:
        """Gives up connections. Harmless twice."""
        return
