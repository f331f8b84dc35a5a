"""Groups of devices, static and dynamic: in memory, written through to the database. Who is in one: see `targets`."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from sqlalchemy import Connection

from droidfleet_controller.fleet.group import Group, description_issues, member_issues, name_issues
from droidfleet_controller.fleet.issues import Issue
from droidfleet_controller.fleet.labels import named
from droidfleet_controller.fleet.query import parse
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.store import events, groups
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import AuditLine, FleetEvent
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ConflictError, ExhaustedError, InvalidInputError, NotFoundError
from droidfleet_shared.protocol.suggestions import nearest

log = structlog.get_logger(__name__)

MAX_GROUPS = 1_000
"""Groups altogether: they are all in memory, with up to 10,000 members each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What to change of a group; None: as it is."""

    query: str | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    description: str | None = None


class Groups:
    """The groups. ``stored``: called after events were written."""

    def __init__(self, *, database: Database, clock: Clock, registry: Registry, stored: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._registry = registry
        self._stored = stored
        self._groups: dict[str, Group] = {}
        self._changed: list[Callable[[], None]] = []

    async def load(self) -> None:
        """Reads all groups from the database, once at the start."""
        self._groups.update({group.name: group for group in await self._database.run(groups.load)})

    def on_changed(self, changed: Callable[[], None]) -> None:
        """Calls ``changed`` after a group changed."""
        self._changed.append(changed)

    # Questions.

    def get(self, name: str) -> Group:
        """A group by name.

        Raises:
            NotFoundError: ``GROUP_NOT_FOUND``, with the nearest name.
        """
        group = self._groups.get(name)
        if group is None:
            near = nearest(name, sorted(self._groups))
            hint = f"Did you mean {near!r}?" if near else "List the groups with: droidfleet group list"
            raise NotFoundError("GROUP_NOT_FOUND", f"unknown group: {name!r}.", hint=hint)
        return group

    def page(self, *, after: str, limit: int) -> list[Group]:
        """Groups by name after ``after``."""
        names = sorted(self._groups)
        start = bisect_right(names, after)
        return [self._groups[name] for name in names[start : start + limit]]

    # Changes.

    async def create(
        self, name: str, *, query: str = "", devices: Sequence[str] = (), description: str = "", actor: str
    ) -> Group:
        """Makes a group: dynamic with a query, else static with these devices, of which there may be none.

        Raises:
            InvalidInputError: ``BAD_GROUP``, with all that is wrong; ``BAD_QUERY``.
            NotFoundError: ``DEVICE_NOT_FOUND``.
            ConflictError: ``GROUP_EXISTS``.
            ExhaustedError: ``TOO_MANY_GROUPS``.
        """
        members = tuple(sorted(set(devices)))
        issues = [*name_issues(name), *description_issues(description), *member_issues(len(members))]
        if query and members:
            issues.append(Issue("query", "BAD_GROUP", "a group has a query or devices, not both"))
        _refuse(issues)
        if query:
            parse(query)
        self._registry.require(members)
        now = self._clock.now()
        group = Group(
            name=name,
            query=query or None,
            devices=members,
            description=description,
            version=1,
            created_at=now,
            updated_at=now,
        )

        def write(connection: Connection) -> None:
            if groups.exists(connection, name):
                raise ConflictError(
                    "GROUP_EXISTS",
                    f"there is a group {name!r} already.",
                    hint="Choose another name, or change it with: droidfleet group set",
                )
            if groups.count(connection) >= MAX_GROUPS:
                raise ExhaustedError("TOO_MANY_GROUPS", f"there are {MAX_GROUPS} groups already.", hint="Delete some.")
            groups.add(connection, group)
            _note(connection, "Create", name, _words_of(group), actor=actor, now=now)

        await self._database.run(write, after=lambda _: self._put(group))
        log.info("group_created", group=name, query=query, devices=len(members))
        return group

    async def update(self, name: str, changes: Update, *, version: int, actor: str) -> Group:
        """Changes a group that is in ``version``; what changes nothing keeps the version.

        Raises:
            InvalidInputError: ``BAD_GROUP``, with all that is wrong; ``BAD_QUERY``.
            NotFoundError: ``GROUP_NOT_FOUND``, ``DEVICE_NOT_FOUND``.
            ConflictError: ``STALE_VERSION``.
        """
        before = self._in_version(name, version)
        _refuse(_update_issues(before, changes))
        if changes.query is not None:
            parse(changes.query)
        self._registry.require((*changes.add, *changes.remove))
        now = self._clock.now()
        members = (set(before.devices) | set(changes.add)) - set(changes.remove)
        _refuse(member_issues(len(members)))
        after = replace(
            before,
            query=before.query if changes.query is None else changes.query,
            devices=tuple(sorted(members)),
            description=before.description if changes.description is None else changes.description,
        )
        if after == before:
            return before
        after = replace(after, version=before.version + 1, updated_at=now)

        def write(connection: Connection) -> None:
            if not groups.replace(connection, before, after):
                raise _stale(name, version)
            _note(connection, "Update", name, _words_between(before, after), actor=actor, now=now)

        await self._database.run(write, after=lambda _: self._put(after))
        log.info("group_changed", group=name, version=after.version)
        return after

    async def delete(self, name: str, *, version: int, actor: str) -> None:
        """Removes a group that is in ``version``.

        Raises:
            NotFoundError: ``GROUP_NOT_FOUND``.
            ConflictError: ``STALE_VERSION``.
        """
        group = self._in_version(name, version)
        now = self._clock.now()

        def write(connection: Connection) -> None:
            if not groups.remove(connection, group):
                raise _stale(name, version)
            _note(connection, "Delete", name, f"deleted ({_words_of(group)})", actor=actor, now=now)

        await self._database.run(write, after=lambda _: self._drop(name))
        log.info("group_deleted", group=name)

    def _in_version(self, name: str, version: int) -> Group:
        group = self.get(name)
        if group.version != version:
            raise _stale(name, version, now=group.version)
        return group

    def _put(self, group: Group) -> None:
        self._groups[group.name] = group
        self._tell()

    def _drop(self, name: str) -> None:
        self._groups.pop(name, None)
        self._tell()

    def _tell(self) -> None:
        self._stored()
        for tell in self._changed:
            tell()


def _update_issues(group: Group, changes: Update) -> list[Issue]:
    issues = description_issues(changes.description) if changes.description is not None else []
    if group.query is None and changes.query is not None:
        hint = "Make a new group with the query, or change the devices."
        issues.append(Issue("query", "BAD_GROUP", f"the group {group.name!r} is static: it lists devices", hint))
    if group.query is not None and (changes.add or changes.remove):
        hint = f"Change its query, which is: {group.query}"
        issues.append(Issue("add", "BAD_GROUP", f"the group {group.name!r} is dynamic: it has a query", hint))
    both = sorted(set(changes.add) & set(changes.remove))
    if both:
        issues.append(Issue("remove", "BAD_GROUP", f"both added and removed: {named(both)}"))
    return issues


def _refuse(issues: Sequence[Issue]) -> None:
    if issues:
        first = issues[0]
        more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
        raise InvalidInputError(
            "BAD_GROUP",
            f"{first.path}: {first.message}{more}.",
            hint=first.hint,
            issues=issues if len(issues) > 1 else (),
        )


def _stale(name: str, version: int, *, now: int | None = None) -> ConflictError:
    is_now = f" it is in version {now} now" if now is not None else " somebody changed it just now"
    return ConflictError(
        "STALE_VERSION",
        f"the group {name!r} is not in version {version} any more;{is_now}.",
        hint=f"Look at it again with: droidfleet group show {name}",
    )


def _words_of(group: Group) -> str:
    return f"query {group.query}" if group.query is not None else f"{len(group.devices)} devices"


def _words_between(before: Group, after: Group) -> str:
    words = []
    if before.query != after.query:
        words.append(f"query {after.query}")
    if added := sorted(set(after.devices) - set(before.devices)):
        words.append(f"with {named(added)}")
    if removed := sorted(set(before.devices) - set(after.devices)):
        words.append(f"without {named(removed)}")
    if before.description != after.description:
        words.append("another description")
    return ", ".join(words)


_KINDS = {"Create": "GroupCreated", "Update": "GroupChanged", "Delete": "GroupDeleted"}


def _note(connection: Connection, verb: str, name: str, words: str, *, actor: str, now: datetime) -> None:
    """The event and the audit line of a change."""
    payload = json.dumps({"group": name}, ensure_ascii=False)
    line = FleetEvent(
        occurred_at=now, recorded_at=now, kind=_KINDS[verb], summary=f"group {name}: {words}", payload=payload
    )
    events.add(connection, [line])
    events.add_audit(connection, AuditLine(at=now, actor=actor, command=f"{verb}Group", subject=name, details=words))
