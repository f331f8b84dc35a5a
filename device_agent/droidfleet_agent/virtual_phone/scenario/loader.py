"""Reads scenario files."""

from __future__ import annotations

from pathlib import Path

from droidfleet_agent.virtual_phone.scenario.models import Scenario


def load_scenario(name_or_path: str | Path, *, variant: str | None = None) -> Scenario:
    """The scenario of a shipped name (``shop``) or a file, with one of its variants applied.

    Raises `ScenarioError` (an `InvalidInputError` with ``issues``) for anything wrong with it.
    """
    raise NotImplementedError


def shipped_scenarios() -> tuple[str, ...]:
    """Names of the scenarios inside the package."""
    raise NotImplementedError
