"""What a rollout would do in this fleet, as things are now: its members, its task, its values, its waves as numbers.

Everything that is wrong is found at once, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from sqlalchemy import Connection

from droidfleet_controller.dispatch.execution import TaskText
from droidfleet_controller.fleet.device import DeviceState
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.fleet.targets import Targets
from droidfleet_controller.rollouts import waves
from droidfleet_controller.rollouts.check import INVALID_ROLLOUT, rules, wave_issues
from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue, cut, require_none
from droidfleet_controller.rollouts.rollout import Subject
from droidfleet_controller.rollouts.spec import MAX_MEMBERS, Membership, Offline, RolloutSpec
from droidfleet_controller.rollouts.starting import Prepared
from droidfleet_controller.rollouts.value_check import check_values, counted, names
from droidfleet_controller.rollouts.values import digest, split
from droidfleet_controller.rollouts.views import PlannedRollout, PlannedWave
from droidfleet_controller.store import executions, tasks
from droidfleet_controller.store.database import Database
from droidfleet_controller.tasks.library import task_not_found
from droidfleet_controller.tasks.template import StoredTask
from droidfleet_shared.errors import DroidfleetError, InvalidInputError, NotFoundError
from droidfleet_shared.protocol.pointers import Json, pointer
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.validate import validate_template
from droidfleet_shared.protocol.wording import name

VISION = "vision"
"""The capability of agents that can look for text and pictures on the screen."""

_SEEN = frozenset({"ocrText", "image"})
"""Fields of selectors that need it."""

EXAMPLE_ID = "example"
"""For the order by hash of a rollout that has no id yet."""


@dataclass(slots=True)
class Looked:
    """What was found. ``prepared`` and ``plan`` are there where it can be said at all what the rollout would do."""

    errors: list[SpecIssue] = field(default_factory=list)
    warnings: list[SpecIssue] = field(default_factory=list)
    prepared: Prepared | None = None
    plan: PlannedRollout | None = None


class Preflights:
    """Looks at documents before anything is begun with them."""

    def __init__(self, *, database: Database, registry: Registry, targets: Targets) -> None:
        self._database = database
        self._registry = registry
        self._targets = targets

    async def prepare(self, spec: RolloutSpec) -> Prepared:
        """Everything that a start needs.

        Raises:
            InvalidInputError: ``INVALID_ROLLOUT`` with all issues.
        """
        looked = await self.look(spec)
        require_none(cut(looked.errors), code=INVALID_ROLLOUT, what="the rollout")
        assert looked.prepared is not None
        return looked.prepared

    async def look(self, spec: RolloutSpec) -> Looked:
        """What is wrong with a document whose shape is right, and what it would do."""
        looked = Looked(errors=list(rules(spec)))
        devices: list[str] = []
        if not any(issue.path.startswith("/target") for issue in looked.errors):
            devices = self._members(spec, looked)
        self._devices_named(spec, devices, looked)
        task, backlog = await self._database.run(lambda connection: _read(connection, spec, devices))
        if isinstance(task, DroidfleetError):
            where = "/task" if spec.revision == 0 else "/revision"
            looked.errors.append(SpecIssue(where, IssueCode.TASK_NOT_FOUND, task.message, task.hint))
        else:
            await self._task(spec, task, devices, looked)
        looked.errors.extend(wave_issues(spec.waves, len(devices)))
        if looked.errors:
            looked.prepared = None
        if looked.prepared is not None:
            looked.plan = self._plan(spec, looked.prepared, sum(backlog.values()))
            looked.warnings.extend(_presence(spec, looked.plan))
            looked.prepared = replace(looked.prepared, warnings=tuple(looked.warnings))
        return looked

    def target_issues(self, spec: RolloutSpec) -> Sequence[SpecIssue]:
        """What is wrong with the target of a document that keeps the rules; its task need not be there."""
        looked = Looked()
        self._members(spec, looked)
        return looked.errors

    def _members(self, spec: RolloutSpec, looked: Looked) -> list[str]:
        try:
            devices = self._targets.members(spec.target)
        except NotFoundError as error:
            looked.errors.extend(_not_found(spec, error))
            return []
        except InvalidInputError as error:
            path = "/target/query" if spec.target.query is not None else "/target/group"
            looked.errors.append(SpecIssue(path, IssueCode(error.code), error.message, error.hint))
            return []
        if len(devices) > MAX_MEMBERS:
            message = f"{len(devices):,} phones are meant; at most {MAX_MEMBERS:,} belong to one rollout"
            hint = "Narrow the target, and start several rollouts."
            looked.errors.append(SpecIssue("/target", IssueCode.TOO_MANY_MEMBERS, message, hint))
        return devices

    def _devices_named(self, spec: RolloutSpec, devices: Sequence[str], looked: Looked) -> None:
        """The phones that are named elsewhere than in the target."""
        if spec.dry_run is not None:
            looked.errors.extend(self._unknown({spec.dry_run.device: "/dryRun/device"}))
        looked.errors.extend(
            self._unknown({device: pointer(("deviceInputs", device)) for device in spec.device_inputs})
        )
        own = spec.device_inputs.keys() - set(devices) - ({spec.dry_run.device} if spec.dry_run else set())
        if devices and own and spec.membership is Membership.SNAPSHOT:
            message = (
                f"{counted(own, 'is', 'are')} in `deviceInputs` and not among the phones of the rollout: {names(own)}"
            )
            hint = "Their values are not used."
            looked.warnings.append(SpecIssue("/deviceInputs", IssueCode.NO_MEMBER, message, hint))

    def _unknown(self, wanted: Mapping[str, str]) -> Iterator[SpecIssue]:
        """Those of some phones that nobody knows. ``wanted``: where each is named."""
        try:
            self._registry.require(wanted)
        except NotFoundError as error:
            yield from _each_unknown(wanted.items(), error)

    async def _task(self, spec: RolloutSpec, stored: StoredTask, devices: Sequence[str], looked: Looked) -> None:
        validation = validate_template(stored.body)
        if validation.task is None:
            message = f"revision {stored.revision} of {name(stored.task_id)} is not valid for this program any more"
            hint = "Look at it with: droidfleet task validate"
            looked.errors.append(SpecIssue("/task", IssueCode.INVALID_TASK, message, hint))
            return
        task = validation.task
        assert isinstance(validation.document, dict)
        phones = list(dict.fromkeys([*devices, *([spec.dry_run.device] if spec.dry_run else [])]))
        looked.errors.extend(await check_values(spec, stored.body, validation.document, phones))
        looked.warnings.extend(_advice(spec, task))
        if _sees(validation.document.get("steps")):
            looked.warnings.extend(self._lacking(phones))
        found = waves.sizes(spec.waves, len(devices))
        looked.warnings.extend(SpecIssue("/waves", IssueCode.WAVES_DO_NOT_FIT, note) for note in found.notes)
        secret = frozenset(each for each, declared in task.inputs.items() if declared.type == "secret")
        shown, kept = split(spec, secret)
        looked.prepared = Prepared(
            spec=shown,
            subject=_subject(stored, task),
            devices=tuple(devices),
            wave_sizes=found.sizes,
            kept=kept,
            digest=digest(spec),
        )

    def _lacking(self, phones: Sequence[str]) -> Iterator[SpecIssue]:
        known = [device for each in phones if (device := self._registry.find(each)) is not None]
        lacking = [device.name for device in known if VISION not in device.heartbeat.capabilities]
        if lacking:
            message = (
                f"the task looks for text or pictures on the screen, which {counted(lacking, 'cannot')} do: "
                f"{names(lacking)}"
            )
            hint = "There it fails with NOT_SUPPORTED. Install the extra `vision` where their agents run."
            yield SpecIssue("/target", IssueCode.LACKS_CAPABILITY, message, hint)

    def _plan(self, spec: RolloutSpec, prepared: Prepared, backlog: int) -> PlannedRollout:
        ordered = waves.places(EXAMPLE_ID, prepared.devices, spec.order)
        remaining = iter(ordered)
        planned: list[PlannedWave] = []
        for number, (wave, size) in enumerate(zip(spec.waves, prepared.wave_sizes, strict=True), 1):
            if size:
                numbers = waves.numbers(wave.gate, size)
                planned.append(
                    PlannedWave(
                        number=number,
                        devices=tuple(islice(remaining, size)),
                        gate=numbers.sentence,
                        successes_needed=numbers.successes_needed,
                        stops_at_failure=numbers.stops_at_failure,
                    )
                )
        offline = self._targets.offline()
        known = [device for each in ordered if (device := self._registry.find(each)) is not None]
        return PlannedRollout(
            task_id=prepared.subject.task_id,
            revision=prepared.subject.revision,
            waves=tuple(planned),
            members=len(ordered),
            offline=tuple(device for device in prepared.devices if device in offline),
            busy=sum(self._registry.state(device) is DeviceState.BUSY for device in known),
            backlog=backlog,
            bound_s=prepared.subject.bound_s,
        )


def _presence(spec: RolloutSpec, plan: PlannedRollout) -> Iterator[SpecIssue]:
    all_of_them = len(plan.offline) == plan.members
    what = {
        Offline.SKIP: "are left out if they are so when their turn comes",
        Offline.FAIL: "count as failures if they are so when their turn comes",
    }.get(spec.offline, "are all that there are" if all_of_them else "")
    if plan.offline and what:
        message = f"{len(plan.offline)} of {plan.members} phones are offline, and {what}"
        yield SpecIssue("/target", IssueCode.OFFLINE, message, "See them with: droidfleet devices")


def _read(
    connection: Connection, spec: RolloutSpec, devices: Sequence[str]
) -> tuple[StoredTask | DroidfleetError, dict[str, int]]:
    revision = spec.revision or None
    stored = tasks.get(connection, spec.task, revision)
    backlog = executions.backlog(connection, devices)
    return stored or task_not_found(connection, spec.task, revision), backlog


def _subject(stored: StoredTask, task: TaskTemplate) -> Subject:
    return Subject(
        task_id=stored.task_id,
        revision=stored.revision,
        text=TaskText(sha256=stored.sha256, add_name=True, add_revision=stored.add_revision),
        step_count=stored.step_count,
        bound_s=stored.bound_s,
        repeatable=task.repeatable,
    )


def _not_found(spec: RolloutSpec, error: NotFoundError) -> Iterator[SpecIssue]:
    if spec.target.group is not None:
        yield SpecIssue("/target/group", IssueCode(error.code), error.message, error.hint)
        return
    places = ((device, f"/target/devices/{position}") for position, device in enumerate(spec.target.devices or ()))
    yield from _each_unknown(places, error)


def _each_unknown(places: Iterable[tuple[str, str]], error: NotFoundError) -> Iterator[SpecIssue]:
    """An issue for each phone that the error names. Looked up all at once: what was meant by each of thousands would
    take minutes."""
    unknown = set(error.details.get("unknown", "").split("\n"))
    hint = error.hint if len(unknown) == 1 else "List the devices with: droidfleet devices"
    for device, path in places:
        if device in unknown:
            yield SpecIssue(path, IssueCode.DEVICE_NOT_FOUND, f"no device {name(device)} is known", hint)


def _advice(spec: RolloutSpec, task: TaskTemplate) -> Iterator[SpecIssue]:
    if spec.retry.max_attempts > 1 and not task.repeatable:
        message = "the task is not `repeatable`, so only those are tried again that told the phone nothing"
        hint = 'If running it twice does no harm, write `"repeatable": true` into the task.'
        yield SpecIssue("/retry/maxAttempts", IssueCode.NOT_REPEATABLE, message, hint)


def _sees(part: Json) -> bool:
    """Whether a selector somewhere looks for text or a picture on the screen."""
    if isinstance(part, dict):
        return not _SEEN.isdisjoint(part) or any(_sees(each) for each in part.values())
    return isinstance(part, list) and any(_sees(each) for each in part)
