"""Labels of devices: texts by key that people set. In memory, written through to the database."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog
from sqlalchemy import Connection

from droidfleet_controller.fleet.facts import is_built_in
from droidfleet_controller.fleet.issues import Issue
from droidfleet_controller.fleet.query import KEY, MAX_KEY, MAX_VALUE
from droidfleet_controller.store import events, labels
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import AuditLine, FleetEvent
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import InvalidInputError

log = structlog.get_logger(__name__)

MAX_LABELS = 64
"""Labels of one device."""

MAX_DEVICES = 10_000
"""Devices in one change, which is one transaction."""

MAX_NAMED = 20
"""Devices spelt out in an error or an audit line; the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What to write, by key, and which keys to remove."""

    set: Mapping[str, str]
    remove: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuses what no label can be.

        Raises:
            InvalidInputError: ``BAD_LABEL``, with all that is wrong.
        """
        issues = [issue for key in (*self.set, *self.remove) if (issue := _key_issue(key))]
        issues += [issue for key, value in self.set.items() if (issue := _value_issue(key, value))]
        both = sorted(set(self.set) & set(self.remove))
        issues += [Issue(key, "BAD_LABEL", "both written and removed", "Leave one of them out.") for key in both]
        if not self.set and not self.remove:
            issues.append(Issue("set", "BAD_LABEL", "nothing to write and nothing to remove", "Name a label."))
        if issues:
            more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
            raise InvalidInputError(
                "BAD_LABEL",
                f"{issues[0].path}: {issues[0].message}{more}",
                hint=issues[0].hint,
                issues=issues if len(issues) > 1 else (),
            )

    def applied(self, before: Mapping[str, str]) -> dict[str, str]:
        """The labels afterwards, by key in order."""
        after = {**before, **self.set}
        return {key: after[key] for key in sorted(after) if key not in self.remove}


class Labels:
    """The labels. ``stored``: called after events were written."""

    def __init__(self, *, database: Database, clock: Clock, stored: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._stored = stored
        self._labels: dict[str, Mapping[str, str]] = {}
        self._changed: list[Callable[[], None]] = []

    async def load(self) -> None:
        """Reads all labels from the database, once at the start."""
        self._labels.update(await self._database.run(labels.load))

    def on_changed(self, changed: Callable[[], None]) -> None:
        """Calls ``changed`` after labels changed."""
        self._changed.append(changed)

    def of(self, device: str) -> Mapping[str, str]:
        """The labels of a device, by key in order."""
        return self._labels.get(device, {})

    def keys(self) -> Counter[str]:
        """All keys, and how many devices have each."""
        return Counter(key for found in self._labels.values() for key in found)

    async def change(self, devices: Sequence[str], changes: Changes, *, actor: str) -> list[str]:
        """Changes the labels of ``devices``, which exist: of all or of none. Gives those that changed.

        Raises:
            InvalidInputError: ``BAD_LABEL``, ``TOO_MANY_DEVICES``, ``TOO_MANY_LABELS``.
        """
        changes.check()
        if not 1 <= len(devices) <= MAX_DEVICES:
            raise InvalidInputError("TOO_MANY_DEVICES", f"devices: 1 to {MAX_DEVICES}, not {len(devices)}.")
        now = self._clock.now()

        def write(connection: Connection) -> dict[str, dict[str, str]]:
            before = labels.of(connection, devices)
            after = {name: changes.applied(before.get(name, {})) for name in devices}
            changed = {name: now_has for name, now_has in after.items() if now_has != before.get(name, {})}
            _require_room(changed)
            if changed:
                labels.write(connection, before, changed)
                events.add(connection, [_event(name, before.get(name, {}), changed[name], now) for name in changed])
                events.add_audit(connection, _audit(sorted(changed), changes, actor, now))
            return changed

        changed = await self._database.run(write, after=self._take)
        log.info("labels_changed", devices=len(changed), set=sorted(changes.set), removed=sorted(changes.remove))
        return sorted(changed)

    def _take(self, changed: Mapping[str, Mapping[str, str]]) -> None:
        self._labels.update(changed)
        if changed:
            self._stored()
            for tell in self._changed:
                tell()


def _key_issue(key: str) -> Issue | None:
    if is_built_in(key):
        hint = "What the agent reports is not set by hand; choose another key."
        return Issue(key, "BAD_LABEL", "this is a built-in fact (see docs/groups.md), and no label", hint)
    if len(key) > MAX_KEY or not KEY.fullmatch(key):
        message = f"a key is 1 to {MAX_KEY} characters: a letter, then letters, digits and _ . / -"
        return Issue(key, "BAD_LABEL", message)
    return None


def _value_issue(key: str, value: str) -> Issue | None:
    if len(value) > MAX_VALUE:
        return Issue(key, "BAD_LABEL", f"a value has at most {MAX_VALUE} characters, not {len(value)}")
    if not value.isprintable():
        return Issue(key, "BAD_LABEL", "a value has no line breaks and no control characters")
    return None


def _require_room(changed: Mapping[str, Mapping[str, str]]) -> None:
    full = [name for name, found in changed.items() if len(found) > MAX_LABELS]
    if full:
        raise InvalidInputError(
            "TOO_MANY_LABELS",
            f"a device has at most {MAX_LABELS} labels; with these there would be more: {named(full)}.",
            hint="Remove some with: droidfleet device label NAME key-",
        )


def named(names: Sequence[str]) -> str:
    """The names, or the first of many and how many more."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _event(device: str, before: Mapping[str, str], after: Mapping[str, str], now: datetime) -> FleetEvent:
    written = {key: value for key, value in after.items() if before.get(key) != value}
    removed = sorted(set(before) - set(after))
    words = [*(f"{key}={value}" for key, value in written.items()), *(f"without {key}" for key in removed)]
    return FleetEvent(
        occurred_at=now,
        recorded_at=now,
        kind="LabelsChanged",
        device=device,
        summary=f"{device}: {', '.join(words)}",
        payload=json.dumps({"set": written, "removed": removed}, ensure_ascii=False),
    )


def _audit(devices: Sequence[str], changes: Changes, actor: str, now: datetime) -> AuditLine:
    details = json.dumps({"set": dict(changes.set), "remove": list(changes.remove)}, ensure_ascii=False)
    return AuditLine(at=now, actor=actor, command="SetLabels", subject=named(devices), details=details)
