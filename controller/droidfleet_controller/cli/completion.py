"""Shell completion of names that the controller knows. Silent when it cannot be asked."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.options import DEFAULT_API
from droidfleet_shared.errors import DroidfleetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_NAMES = 200


def complete_device(incomplete: str) -> list[str]:
    """Names of devices that begin like this."""
    return _names(lambda client: (item.name for item in client.devices()), incomplete)


def complete_task(incomplete: str) -> list[str]:
    """Ids of stored tasks that begin like this."""
    return _names(lambda client: (item.task_id for item in client.tasks()), incomplete)


def complete_execution(incomplete: str) -> list[str]:
    """Ids of recent executions that begin like this."""
    return _names(lambda client: (item.execution_id for item in client.executions(limit=MAX_NAMES)), incomplete)


def complete_group(incomplete: str) -> list[str]:
    """Names of groups that begin like this."""
    return _names(lambda client: (item.name for item in client.groups()), incomplete)


def complete_rollout(incomplete: str) -> list[str]:
    """Ids of recent rollouts that begin like this."""
    return _names(lambda client: (item.rollout_id for item in client.rollouts(limit=MAX_NAMES)), incomplete)


def complete_schedule(incomplete: str) -> list[str]:
    """Names of schedules that begin like this."""
    return _names(lambda client: (item.name for item in client.schedules()), incomplete)


def complete_draft(incomplete: str) -> list[str]:
    """Ids of recent drafts that begin like this."""
    return _names(lambda client: (item.draft_id for item in client.drafts(limit=MAX_NAMES)), incomplete)


def _names(listed: Callable[[ControllerClient], Iterable[str]], incomplete: str) -> list[str]:
    try:
        with ControllerClient(os.environ.get("DROIDFLEET_API", DEFAULT_API)) as client:
            return list(islice((name for name in listed(client) if name.startswith(incomplete)), MAX_NAMES))
    except DroidfleetError:
        return []
