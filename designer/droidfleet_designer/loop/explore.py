"""Runs one exploration: does what `deciding` says is next, and writes each thing down before and after it is done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, MutableMapping
from datetime import timedelta
from functools import partial
from random import Random
from typing import Protocol, assert_never

import structlog
from pydantic import JsonValue

from droidfleet_designer.conversation import ToolCall
from droidfleet_designer.draft.draft import Brief, Draft
from droidfleet_designer.log import (
    ApprovalAnswered,
    ApprovalAsked,
    Began,
    Ended,
    Entry,
    OutcomeKind,
    Problem,
    Proposed,
    Resumed,
    Spoke,
    ToolBegan,
    ToolEnded,
)
from droidfleet_designer.loop import deciding, history
from droidfleet_designer.loop.asking import asked
from droidfleet_designer.loop.budget import conversation_room, cost, output_room
from droidfleet_designer.loop.deciding import Ask, Carry, Write
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.loop.state import TASK_NOT_RIGHT, TOO_LONG, State, after, state_of
from droidfleet_designer.loop.submission import Check, examined, issues_in_words
from droidfleet_designer.loop.telling import told
from droidfleet_designer.model.port import Model, ModelRefusedError
from droidfleet_designer.ports import Approver, ExplorationLog, PlanCheck
from droidfleet_designer.tools.phone import TTL_S
from droidfleet_designer.tools.tool import Outcome
from droidfleet_designer.tools.workshop import BEFORE, Submit, Workshop
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.screen.snapshot import Snapshot

log = structlog.get_logger(__name__)

LEASE_OVER_S = TTL_S + 30.0
"""After a restart: until the lease of the process before has ended, and agents have found the new one."""

LEASE_AGAIN_S = 5.0
"""Between two tries to take the phone."""


class WorkshopMaker(Protocol):
    """Makes the tools of one exploration: a `Workshop` with all that is the same for every exploration given."""

    def __call__(
        self,
        *,
        device: str,
        allow_points: bool,
        snapshots: MutableMapping[str, Snapshot],
        submit: Submit,
        calls: Mapping[str, int],
    ) -> Workshop: ...


class Exploration:
    """One exploration, for one `run`. ``new_id`` makes ids that are never made twice, in no process."""

    def __init__(
        self,
        *,
        model: Model,
        workshop: WorkshopMaker,
        log: ExplorationLog,
        approver: Approver,
        check: Check,
        plans: PlanCheck,
        clock: Clock,
        random: Random,
        limits: Limits,
        words: EffectWords,
        new_id: Callable[[], str],
    ) -> None:
        self._model = model
        self._make_workshop = workshop
        self._log = log
        self._approver = approver
        self._check = check
        self._plans = plans
        self._clock = clock
        self._random = random
        self._limits = limits
        self._words = words
        self._new_id = new_id
        self._entries: list[Entry] = []
        self._state = State()
        self._snapshots: dict[str, Snapshot] = {}
        self._work: asyncio.Task[Ended] | None = None
        self._stopped = False

    async def run(self, brief: Brief) -> Ended:
        """Explores to the end, or goes on to it from what the log holds, whose brief counts then.

        Whatever goes wrong is an end, too; the phone is given back before it is written. Cancelled, it gives the phone
        back and writes no end, so that another process can go on.

        Raises:
            DroidfleetError: the log cannot be read, or the end not be written.
        """
        self._entries = [each.entry for each in await self._log.entries()]
        self._state = state_of(self._entries)
        if self._state.ended is not None:
            return self._state.ended
        async with asyncio.TaskGroup() as tasks:
            self._work = tasks.create_task(self._to_an_end(brief), name="exploration")
            if self._stopped:
                self._work.cancel()
        end = deciding.stopped(self._state) if self._work.cancelled() else self._work.result()
        await self._write(end)
        return end

    def stop(self) -> None:
        """A person ends it: it gives the phone back and ends as ``STOPPED``. Harmless twice, and before it runs."""
        self._stopped = True
        if self._work is not None:
            self._work.cancel()

    async def _to_an_end(self, brief: Brief) -> Ended:
        try:
            await self._write(self._began(brief) if self._state.began is None else Resumed())
            return await self._explore()
        except DroidfleetError as error:
            return deciding.failed_by(self._state, error)
        except Exception:
            # A defect of ours, or of a server's answer that nobody has seen yet. Going on would only meet it again.
            log.exception("exploration_broke", turn=self._state.turn)
            return deciding.failed(self._state, "INTERNAL", "The designer broke off; its log says where.")

    def _began(self, brief: Brief) -> Began:
        limits = self._limits
        return Began(
            brief=brief,
            model=self._model.name,
            sees=self._model.sees,
            max_turns=limits.max_turns,
            max_tokens=min(limits.max_tokens, brief.settings.max_tokens or limits.max_tokens),
            max_money=limits.max_money,
            prices=limits.prices,
            currency=limits.currency,
        )

    async def _write(self, entry: Entry) -> None:
        await self._log.append(entry)
        self._entries.append(entry)
        self._state = after(self._state, entry)

    async def _explore(self) -> Ended:
        """Goes on to the end, which is returned and not written yet. The phone is taken when it is first needed."""
        workshop: Workshop | None = None
        try:
            while True:
                move = deciding.next_move(self._state, limits=self._limits)
                if isinstance(move, Write):
                    if isinstance(move.entry, Ended):
                        return move.entry
                    await self._write(move.entry)
                    continue
                workshop = workshop or await self._enter()
                match move:
                    case Ask():
                        if (end := await self._ask(workshop)) is not None:
                            return end
                    case Carry(call, arguments):
                        await self._carry_out(workshop, call, arguments)
                    case _ as never:
                        assert_never(never)
        finally:
            if workshop is not None:
                await workshop.leave()

    async def _enter(self) -> Workshop:
        """Takes the phone, with what was seen of it before."""
        seen = {each.snapshot for each in self._entries if isinstance(each, ToolEnded) and each.snapshot}
        for each in (BEFORE, *sorted(seen)):
            if (snapshot := await self._log.snapshot(each)) is not None:
                self._snapshots[each] = snapshot
        new = BEFORE not in self._snapshots
        settings = self._state.began_with.brief.settings
        workshop = self._make_workshop(
            device=self._state.began_with.brief.device,
            allow_points=settings.allow_points,
            snapshots=self._snapshots,
            submit=self._submit,
            calls=self._state.counts,
        )
        await self._take(workshop)
        try:
            if new:
                await self._log.keep_snapshot(BEFORE, self._snapshots[BEFORE])
        except BaseException:
            await workshop.leave()
            raise
        return workshop

    async def _take(self, workshop: Workshop) -> None:
        """Takes the phone; after a restart also once the lease of the process before is over, and the phone is back."""
        wait = self._clock.deadline(LEASE_OVER_S if self._state.resumes else 0.0)
        while True:
            try:
                return await workshop.enter()
            except DroidfleetError as error:
                if error.code not in ("DEVICE_BUSY", "DEVICE_OFFLINE") or wait.passed:
                    raise
            await self._clock.sleep(LEASE_AGAIN_S)

    # The model --------------------------------------------------------------------------------------------------------

    async def _ask(self, workshop: Workshop) -> Ended | None:
        """A turn of the model; the end, if there is not enough left for one."""
        tools = workshop.specs(self._state.began_with.brief.settings.language)
        digest = history.newest_picture(self._entries) if self._model.sees else ""
        shot = await self._log.picture(digest) if digest else None
        room = conversation_room(self._state, self._limits)
        messages, tokens = history.conversation(self._entries, tools=tools, shot=shot, most_tokens=room)
        output = output_room(self._state, input_tokens=tokens, limits=self._limits)
        if not output:
            return deciding.out_of_budget(self._state)
        started = self._clock.monotonic()
        try:
            turn = await asked(
                self._model,
                messages,
                tools=tools,
                max_output_tokens=output,
                heard=self._log.heard,
                failed=self._trouble,
                clock=self._clock,
                random=self._random,
                limits=self._limits,
            )
        except ModelRefusedError as error:
            if not error.too_long:
                raise
            await self._write(Problem(code=TOO_LONG, message=error.message))
            return None
        spent, usage = self._state, turn.usage
        prices = spent.began_with.prices
        money = None if prices is None else (spent.spent_money or 0.0) + cost(usage, prices)
        await self._write(
            Spoke(
                turn=spent.turn + 1,
                text=turn.answer.text,
                calls=turn.answer.calls,
                stop=turn.stop,
                usage=usage,
                spent_tokens=spent.spent_tokens + usage.input_tokens + usage.output_tokens,
                spent_money=money,
                model_ms=self._ms_since(started),
            )
        )
        return None

    async def _trouble(self, error: DroidfleetError, again_in_s: float) -> None:
        await self._write(Problem(code=error.code, message=error.message, again_in_s=round(again_in_s, 1)))

    # The tools --------------------------------------------------------------------------------------------------------

    async def _carry_out(self, workshop: Workshop, call: ToolCall, arguments: Mapping[str, JsonValue]) -> None:
        request_id = self._new_id()
        written = json.dumps(arguments, ensure_ascii=False)
        await self._write(ToolBegan(call_id=call.id, name=call.name, arguments_json=written, request_id=request_id))
        started = self._clock.monotonic()
        carry_out = partial(workshop.call, call.name, arguments, request_id=request_id)
        outcome = await carry_out()
        if outcome.kind is OutcomeKind.NEEDS_APPROVAL:
            allowed = await self._allowed(call, written, outcome.why)
            outcome = await carry_out(approved=True) if allowed else self._not_allowed(outcome)
        await self._write(await self._kept(call, outcome, started))

    async def _allowed(self, call: ToolCall, arguments_json: str, why: str) -> bool:
        approval_id = self._new_id()
        deadline = self._clock.deadline(self._limits.approval_s)
        until = self._clock.now() + timedelta(seconds=self._limits.approval_s)
        await self._write(
            ApprovalAsked(
                approval_id=approval_id,
                call_id=call.id,
                name=call.name,
                arguments_json=arguments_json,
                why=why,
                until=until,
            )
        )
        answered = await self._approver.approve(approval_id, deadline=deadline)
        await self._write(ApprovalAnswered(approval_id=approval_id, allowed=answered.allowed, by=answered.by))
        return answered.allowed

    def _not_allowed(self, withheld: Outcome) -> Outcome:
        return Outcome(OutcomeKind.NEEDS_APPROVAL, self._told("NOT_ALLOWED", why=withheld.why), code="NOT_ALLOWED")

    async def _kept(self, call: ToolCall, outcome: Outcome, started: float) -> ToolEnded:
        """What came of a call as an entry; what was seen is kept before it is written."""
        if outcome.snapshot is not None:
            await self._log.keep_snapshot(outcome.snapshot_id, outcome.snapshot)
        digest, text = "", outcome.text
        if outcome.shot is not None:
            digest = await self._log.keep_picture(outcome.shot)
            text += "" if self._model.sees else f"\n{self._told('NO_PICTURES')}"
        return ToolEnded(
            call_id=call.id,
            name=call.name,
            outcome=outcome.kind,
            code=outcome.code,
            text=text,
            snapshot=outcome.snapshot_id,
            picture=digest,
            tool_ms=self._ms_since(started),
        )

    async def _submit(self, proposal: Mapping[str, JsonValue]) -> Outcome:
        found = await examined(
            proposal,
            brief=self._state.began_with.brief,
            snapshots={name: each for name, each in self._snapshots.items() if name != BEFORE},
            words=self._words,
            check=self._check,
            plans=self._plans,
        )
        if isinstance(found, Draft):
            await self._write(Proposed(draft=found))
            return Outcome(OutcomeKind.RESULT, self._told("ACCEPTED"), ends=True)
        left = self._limits.max_resubmissions - self._state.submissions
        text = self._told("TASK_NOT_RIGHT", issues=issues_in_words(found), left=left)
        return Outcome(OutcomeKind.RETRY, text, code=TASK_NOT_RIGHT)

    def _told(self, code: str, **values: object) -> str:
        return told(code, self._state.began_with.brief.settings.language, **values)

    def _ms_since(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)
