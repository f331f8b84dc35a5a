"""The tools of one exploration, on one phone, within the rules.

Which calls reach the phone is for `policy` and `guard` to say, and the lease is `phone`'s; the tools know none of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence

from pydantic import JsonValue, ValidationError

from droidfleet_designer.observation.quoting import quoted
from droidfleet_designer.ports import Phones
from droidfleet_designer.tools import catalogue
from droidfleet_designer.tools.arguments import (
    Acting,
    Arguments,
    FindText,
    ListDevices,
    ListGroups,
    Look,
)
from droidfleet_designer.tools.phone import Phone
from droidfleet_designer.tools.policy import MAX_CALLS, Policy, RefusedError
from droidfleet_designer.tools.seeing import PAUSE_S, Seeing
from droidfleet_designer.tools.steps import going_home, going_to
from droidfleet_designer.tools.telling import (
    MAY_HAVE_HAPPENED,
    bad_arguments,
    devices_in_words,
    error_in_words,
    groups_in_words,
    kind_of_error,
    kind_of_result,
    outcome_seen,
    result_in_words,
)
from droidfleet_designer.tools.tool import Outcome, OutcomeKind, ToolSpec
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.screen.snapshot import Snapshot

BEFORE = "s0"
"""The snapshot of what was in front before the exploration."""

Submit = Callable[[Mapping[str, JsonValue]], Awaitable[Outcome]]


class Workshop:
    """The tools.

    ``snapshots``: what was seen so far, by id; new ones are added, and observations are numbered on from there. Whoever
    keeps them over a restart keeps ``s0`` too: its app is what `leave` restores. ``calls``: how often each tool was
    called before a restart; ``max_calls``: how often it may be. ``pause_s``: between the looks after an action; 0: one
    look is enough.
    """

    def __init__(
        self,
        *,
        phones: Phones,
        device: str,
        holder: str,
        clock: Clock,
        words: EffectWords,
        allow_points: bool,
        snapshots: MutableMapping[str, Snapshot],
        new_id: Callable[[], str],
        submit: Submit,
        calls: Mapping[str, int] | None = None,
        max_calls: int = MAX_CALLS,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._phones = phones
        self._phone = Phone(phones=phones, device=device, holder=holder, clock=clock)
        self._allow_points = allow_points
        self._snapshots = snapshots
        self._new_id = new_id
        self._submit = submit
        self._seeing = Seeing(phone=self._phone, clock=clock, words=words, snapshots=snapshots, pause_s=pause_s)
        self._policy = Policy(
            seeing=self._seeing, words=words, allow_points=allow_points, calls=calls or {}, max_calls=max_calls
        )

    def specs(self, language: str) -> Sequence[ToolSpec]:
        """The tools as a model is told of them; ``language``: en or zh."""
        return catalogue.specs(language, allow_points=self._allow_points)

    async def enter(self) -> None:
        """Takes the lease, which renews itself from now on, and remembers what is in front.

        Raises:
            DroidfleetError: the phone cannot be had (``DEVICE_BUSY`` says who has it) or seen. Then nothing is held.
        """
        await self._phone.take()
        if BEFORE in self._snapshots:
            return
        try:
            self._snapshots[BEFORE] = await self._phone.look()
        except BaseException:
            await self._phone.give_back(before=_nothing)
            raise

    async def leave(self) -> None:
        """Brings the app to the front that was there before, as well as can be, and gives the lease back.

        Bounded, and carried to its end also when whoever calls is cancelled. Raises nothing. Harmless twice.
        """
        await self._phone.give_back(before=self._restore)

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], *, request_id: str, approved: bool = False
    ) -> Outcome:
        """Carries a call out, within the rules. Raises nothing of `DroidfleetError`: the outcome tells it.

        ``request_id``: of the step on the phone, which runs once for each. ``approved``: a person allowed this very
        call, which was withheld before; it is withheld again if the screen no longer shows what they were asked about.
        """
        try:
            arguments_of = self._policy.admit(name, again=approved)
            if name == catalogue.SUBMIT:
                return await self._submit(arguments)
            given = arguments_of.model_validate(dict(arguments))
            return await self._carry_out(name, given, request_id=request_id, approved=approved)
        except ValidationError as error:
            return Outcome(OutcomeKind.RETRY, bad_arguments(name, error), code="BAD_ARGUMENTS")
        except RefusedError as refused:
            return refused.outcome
        except DroidfleetError as error:
            return Outcome(kind_of_error(error), error_in_words(error), code=error.code)

    async def _carry_out(self, name: str, given: Arguments, *, request_id: str, approved: bool) -> Outcome:
        match given:
            case ListDevices():
                text = devices_in_words(await self._phones.devices(), explored=self._phone.device)
                return Outcome(OutcomeKind.RESULT, text)
            case ListGroups():
                return Outcome(OutcomeKind.RESULT, groups_in_words(await self._phones.groups()))
            case Look():
                return await self._screen(picture=given.picture)
            case FindText():
                return await self._find(given.text)
            case _:
                assert isinstance(given, Acting), "every other tool acts"
                return await self._act(name, given, request_id=request_id, approved=approved)

    async def _screen(self, *, picture: bool) -> Outcome:
        seen = await self._seeing.look()
        if not picture:
            return outcome_seen(OutcomeKind.RESULT, "", seen, self._seeing.of(seen))
        try:
            shot = await self._phone.shot()
        except DroidfleetError as error:
            return outcome_seen(
                OutcomeKind.RESULT, f"There is no picture: {error_in_words(error)}", seen, self._seeing.of(seen)
            )
        return outcome_seen(OutcomeKind.RESULT, "", seen, self._seeing.of(seen), shot=shot)

    async def _find(self, text: str) -> Outcome:
        seen, found = await self._seeing.look_for(text)
        said = (
            f"Only what contains {quoted(text)}:" if found else f"Nothing here contains {quoted(text)}. All there is:"
        )
        return outcome_seen(OutcomeKind.RESULT, said, seen, self._seeing.of(seen))

    async def _act(self, name: str, call: Acting, *, request_id: str, approved: bool) -> Outcome:
        step = await self._policy.step(call, approved=approved)
        before, self._seeing.newest = self._seeing.newest, None
        try:
            result = await self._phone.step(step, request_id=request_id)
        except DroidfleetError as error:
            kind, code = kind_of_error(error), error.code
            if kind is OutcomeKind.RETRY:
                self._seeing.newest = before
            if kind is not OutcomeKind.INTERRUPTED:
                raise
            text = f"{name}: {error_in_words(error)}\n{MAY_HAVE_HAPPENED}"
        else:
            kind, code = kind_of_result(result), "" if result.successful else result.code.value
            text = result_in_words(name, result, kind)
        try:
            seen = await self._seeing.look_at_rest()
        except DroidfleetError as error:
            unseen = f"What the screen shows now is not known ({error.code}): look with `screen`."
            return Outcome(kind, f"{text}\n{unseen}", code=code)
        if before is not None and self._seeing.of(before) == self._seeing.of(seen):
            text += " The screen is as it was before."
        return outcome_seen(kind, text, seen, self._seeing.of(seen), code=code)

    async def _restore(self) -> None:
        """Shows again what was in front. Where that app cannot be opened, as a launcher cannot, Home is pressed."""
        front = self._snapshots[BEFORE].package
        if (await self._phone.look()).package == front:
            return
        if front:
            result = await self._phone.step(going_to(front), request_id=self._new_id())
            if result.successful:
                return
        await self._phone.step(going_home(), request_id=self._new_id())


async def _nothing() -> None:
    pass
