"""Asks the model for a turn, again where it may work later. The waits are drawn at random, so that not all come back at
once; what a server asks for is kept to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from random import Random

from droidfleet_designer.conversation import Message, Turn
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.model.port import Model, ModelBusyError, ModelUnavailableError, ToolSpec
from droidfleet_shared.clock import Clock

BACKOFF_BASE_S = 2.0
BACKOFF_CAP_S = 60.0
"""Full jitter between nothing and a bound that doubles from base to cap: rate limits are mostly by the minute."""

Failed = Callable[[ModelBusyError | ModelUnavailableError, float], Awaitable[None]]


async def asked(
    model: Model,
    messages: Sequence[Message],
    *,
    tools: Sequence[ToolSpec],
    max_output_tokens: int,
    heard: Callable[[str], None],
    failed: Failed,
    clock: Clock,
    random: Random,
    limits: Limits,
) -> Turn:
    """The model's next turn. ``failed`` is told each error that is not the last, and in how many seconds it is tried
    again.

    Raises:
        ModelBusyError, ModelUnavailableError: it did not work so often, or for so long; the last error.
        ModelDeniedError, ModelRefusedError: it will not work.
    """
    end = clock.deadline(limits.patience_s)
    tries = 0
    while True:
        tries += 1
        try:
            return await model.answer(
                messages,
                tools=tools,
                max_output_tokens=max_output_tokens,
                deadline=end.at_most(limits.answer_s),
                heard=heard,
            )
        except (ModelBusyError, ModelUnavailableError) as error:
            wait = random.uniform(0.0, min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2**tries))
            if isinstance(error, ModelBusyError):
                wait += error.retry_after_s
            if tries >= limits.max_tries or wait >= end.remaining():
                raise
            await failed(error, wait)
            await clock.sleep(wait)
