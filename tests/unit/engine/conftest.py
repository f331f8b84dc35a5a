"""A shop on a phone in memory, and a clock that jumps."""

from __future__ import annotations

import pytest

from droidfleet_shared.clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()
