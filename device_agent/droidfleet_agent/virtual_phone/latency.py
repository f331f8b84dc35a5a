"""How long a virtual phone takes: profiles of delays in milliseconds. Only data and sums; the wire does the waiting."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from droidfleet_agent.virtual_phone.calls import CallKind
from droidfleet_shared.errors import InvalidInputError

MAX_DELAY_MS = 600_000
"""Ten minutes, the longest that any client waits."""

Milliseconds = Annotated[float, Field(ge=0, le=MAX_DELAY_MS)]


class LatencyProfile(BaseModel):
    """Delays in milliseconds, one for each `CallKind`, and whether gestures take the time that they ask for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dump: Milliseconds = 0.0
    screenshot: Milliseconds = 0.0
    query: Milliseconds = 0.0
    tap: Milliseconds = 0.0
    text: Milliseconds = 0.0
    key: Milliseconds = 0.0
    shell: Milliseconds = 0.0
    server_start: Milliseconds = 0.0
    """From `app_process` to the first answer on port 9008."""
    ping: Milliseconds = 0.0
    real_gestures: bool = False
    """True: a swipe of n steps takes n times 5 ms, a long press as long as it says."""

    def seconds(self, kind: CallKind, *, gesture_ms: float = 0.0) -> float:
        """The whole delay of one call, seconds. ``gesture_ms`` is the time that the gesture itself asks for."""
        delay_ms: float = getattr(self, kind.value)
        if self.real_gestures:
            delay_ms += gesture_ms
        return delay_ms / 1_000.0


PROFILES = MappingProxyType(
    {
        "zero": LatencyProfile(),
        # A mid-range phone over a cable, as the facts page measured and the benchmarks assume.
        "realistic": LatencyProfile(  # noqa: S604  # a delay, not subprocess's shell
            dump=120,
            screenshot=150,
            query=30,
            tap=30,
            text=30,
            key=30,
            shell=60,
            server_start=1_200,
            ping=3,
            real_gestures=True,
        ),
    }
)


def latency_profile(text: str) -> LatencyProfile:
    """Reads ``zero``, ``realistic``, or changes to one in ms: ``realistic,dump=400``, or ``tap=5,shell=20`` from zero.

    Raises `InvalidInputError` with code ``LATENCY_INVALID``.
    """
    first, _, rest = text.partition(",")
    base = PROFILES.get(first.strip())
    changes = rest if base is not None else text
    values: dict[str, object] = (base or PROFILES["zero"]).model_dump()
    try:
        for item in filter(None, (part.strip() for part in changes.split(","))):
            name, equals, value = item.partition("=")
            if not equals:
                raise ValueError(f"`{item}` is neither a profile ({', '.join(PROFILES)}) nor NAME=MILLISECONDS")
            values[name.strip()] = value.strip()
        return LatencyProfile.model_validate(values)
    except ValidationError as error:
        reasons = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise _invalid(reasons) from error
    except ValueError as error:
        raise _invalid(str(error)) from error


def _invalid(reason: str) -> InvalidInputError:
    return InvalidInputError(
        "LATENCY_INVALID",
        f"The latency cannot be read: {reason}.",
        hint=f"Use one of {', '.join(PROFILES)}, or delays in ms such as `dump=120,tap=30`. "
        f"Names: {', '.join(LatencyProfile.model_fields)}.",
    )
