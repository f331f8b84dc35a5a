"""The record of a group of devices, and what one may look like. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from droidfleet_controller.fleet.issues import Issue
from droidfleet_shared.protocol.names import MAX_NAME_LENGTH, NAME_PATTERN

MAX_MEMBERS = 10_000
"""Devices that a static group lists."""

MAX_DESCRIPTION = 500

_NAME = re.compile(NAME_PATTERN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Devices that are meant together. ``query``: of a dynamic group, evaluated at use; None: the group is static and
    lists its ``devices``, by name. ``version`` grows with every change."""

    name: str
    query: str | None
    devices: tuple[str, ...]
    description: str
    version: int
    created_at: datetime
    updated_at: datetime


def name_issues(name: str) -> list[Issue]:
    """What is wrong with a name of a group."""
    if len(name) <= MAX_NAME_LENGTH and _NAME.fullmatch(name):
        return []
    message = f"expected 1 to {MAX_NAME_LENGTH} characters, no control characters, no white space around them"
    return [Issue("name", "BAD_NAME", message)]


def description_issues(description: str) -> list[Issue]:
    """What is wrong with a description."""
    if len(description) <= MAX_DESCRIPTION:
        return []
    message = f"expected at most {MAX_DESCRIPTION} characters, not {len(description)}"
    return [Issue("description", "BAD_DESCRIPTION", message)]


def member_issues(count: int) -> list[Issue]:
    """What is wrong with so many devices."""
    if count <= MAX_MEMBERS:
        return []
    message = f"expected at most {MAX_MEMBERS} devices, not {count}"
    return [Issue("devices", "TOO_MANY_DEVICES", message, "A group with a query has no such limit.")]
