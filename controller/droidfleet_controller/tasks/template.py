"""The record of a stored task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTask:
    """A revision of a task. ``body`` is the text exactly as saved, empty in lists; ``bound_s`` the longest it may run;
    ``add_revision``: the author left the revision to the library, so dispatch writes it into the text."""

    task_id: str
    revision: int
    sha256: str
    add_revision: bool
    step_count: int
    bound_s: float
    created_at: datetime
    body: str
