"""Fixtures that every test may use, from `tests/support`."""

from __future__ import annotations

pytest_plugins = ["support.adb"]
