"""Proves each selector of a task on the screens that the exploration saw. Pure.

What counts is what the executor would have done on such a screen: the same matcher, the same rule for what is touched
and what only has to be there. The first screen that proves a selector is its evidence, along the way that was walked
and in the app that the task has opened by then. What nothing proves is an issue that tells the model what there was
instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from droidfleet_designer.draft.candidates import Candidates, told
from droidfleet_designer.draft.draft import Evidence
from droidfleet_designer.draft.looks import Look, looks_at
from droidfleet_designer.draft.selectors import Asked, Named, selectors_in
from droidfleet_designer.observation.quoting import quoted, quoted_json
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps import OpenStep, WaitStep
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.tree import walk
from droidfleet_shared.protocol.values import MissingValueError, UnfitValueError, input_texts, resolve_step
from droidfleet_shared.screen.matching import Ambiguous, Disabled, Matched, NotFound
from droidfleet_shared.screen.node import Node
from droidfleet_shared.screen.snapshot import Snapshot


class EvidenceCode(StrEnum):
    """What an issue of this check is about."""

    NO_EVIDENCE = "NO_EVIDENCE"
    """The selector matched nothing on any screen."""
    AMBIGUOUS_EVIDENCE = "AMBIGUOUS_EVIDENCE"
    """Wherever it matched it matched several, and one is meant."""
    NOT_PROVABLE = "NOT_PROVABLE"
    """The tree of a screen cannot show it: a point, a picture, a text in a picture, a value that is not known."""
    APP_NOT_SEEN = "APP_NOT_SEEN"
    """The app was never in front."""


class Remark(StrEnum):
    """What a person is told of a selector that is taken. Names the sentence in `prompts/draft.*.md`."""

    POINT_UNPROVED = "POINT_UNPROVED"
    OUTPUT_UNPROVED = "OUTPUT_UNPROVED"
    SEEN_DISABLED = "SEEN_DISABLED"


@dataclass(frozen=True, slots=True)
class EvidenceFound:
    """``issues``: what is not proved, in the order of the task; none: all is. ``remarks``: by step id."""

    evidence: tuple[Evidence, ...]
    issues: tuple[Issue, ...]
    remarks: tuple[tuple[Remark, str], ...]


_REREAD = "Look at the screen where it is needed, and copy its selector from there."
_NEVER_SEEN = "matched nothing on any screen of this exploration"
_ONLY_IN_TREE = "Name an element by its text, description or id; what has none goes to `notes`."


def find_evidence(
    task: TaskTemplate, snapshots: Mapping[str, Snapshot], *, allow_points: bool = False
) -> EvidenceFound:
    """Proves every selector of a valid task, and that every app which it opens was seen in front.

    ``snapshots``: by their id, ``s0``, ``s1``, ... Paths are JSON Pointers in the task.
    """
    search = _Search(task, looks_at(snapshots))
    for named in selectors_in(task):
        search.prove(named, allow_points=allow_points)
    search.apps()
    return EvidenceFound(tuple(search.evidence), tuple(search.issues), tuple(dict.fromkeys(search.remarks)))


class _Search:
    """One search. ``looks`` are the newest first."""

    def __init__(self, task: TaskTemplate, looks: tuple[Look, ...]) -> None:
        self._task = task
        self._looks = looks
        self._inputs = input_texts(task)
        self._candidates = Candidates(looks)
        self._reached: Look | None = None
        self._fronts = _opened_before(task)
        self.evidence: list[Evidence] = []
        self.issues: list[Issue] = []
        self.remarks: list[tuple[Remark, str]] = []

    def apps(self) -> None:
        """An app that was never in front may not be there, or be called otherwise."""
        seen = {look.snapshot.package for look in self._looks}
        for path, step in walk(self._task.steps):
            if isinstance(step, OpenStep) and step.package_name not in seen and "${" not in step.package_name:
                known = ", ".join(quoted(each) for each in sorted(seen - {""}))
                self._issue(
                    f"{path}/packageName",
                    EvidenceCode.APP_NOT_SEEN,
                    f"the app {quoted(step.package_name)} was never in front in this exploration",
                    f"Open it with `open_app` first. Seen in front were: {known or 'none'}.",
                )

    def prove(self, named: Named, *, allow_points: bool) -> None:
        """Finds the evidence of one selector, or says why there is none."""
        written = named.selector
        if written.point is not None:
            if allow_points:
                self.remarks.append((Remark.POINT_UNPROVED, named.step.id))
            else:
                message = "a point of the display proves nothing, and the person did not allow points"
                self._issue(named.path, EvidenceCode.NOT_PROVABLE, message, _ONLY_IN_TREE)
            return
        if written.ocr_text is not None or written.image is not None:
            message = "what only a picture shows cannot be proved on the lines of a screen"
            self._issue(named.path, EvidenceCode.NOT_PROVABLE, message, _ONLY_IN_TREE)
            return
        selector = self._meant(named, written)
        around = self._meant(named, named.around) if named.around is not None else None
        if selector is None or (named.around is not None and around is None):
            return
        self._search(named, selector, around)

    def _meant(self, named: Named, selector: Selector) -> Selector | None:
        """The selector with the values of its references; None: it cannot be known, and that was said."""
        holder = WaitStep(id="_", action="WAIT", selector=selector)
        try:
            return resolve_step(holder, inputs=self._inputs, outputs={}).selector
        except MissingValueError as error:
            of_output = error.reference.startswith("${outputs.")
            if of_output and named.asked is not Asked.ONE_TO_TOUCH:
                self.remarks.append((Remark.OUTPUT_UNPROVED, named.step.id))
                return None
            message = f"{quoted(error.reference)} has no value with which the selector could be tried"
            hint = "Give the input the `default` with which you saw the element, or name the element otherwise."
            if of_output:
                message = f"what {quoted(error.reference)} will be is not known, and the step touches what it names"
                hint = "Name what is touched by what you saw; a value that is read may be looked for, not touched."
        except UnfitValueError as error:
            message = f"with its values {quoted(error.field)} is no selector: {error.reason}"
            hint = "Correct the default of its input."
        self._issue(named.path, EvidenceCode.NOT_PROVABLE, message, hint)
        return None

    def _search(self, named: Named, selector: Selector, around: Selector | None) -> None:
        several: tuple[Look, Ambiguous] | None = None
        disabled: tuple[Look, Node] | None = None
        for look in self._in_order(named):
            if named.package and look.snapshot.package != named.package:
                continue
            match _outcome(look, named, selector, around):
                case Matched(node):
                    self._proved(named, look, node)
                    return
                case Disabled((node,)):
                    disabled = disabled or (look, node)
                case Ambiguous() as outcome:
                    several = several or (look, outcome)
                case _:
                    pass
        if disabled is not None:
            # The executor waits for it to be enabled, and the exploration may well not have been allowed to get there.
            self._proved(named, *disabled)
            self.remarks.append((Remark.SEEN_DISABLED, named.step.id))
        elif several is not None:
            look, outcome = several
            self._issue(
                named.path,
                EvidenceCode.AMBIGUOUS_EVIDENCE,
                f"{_shown(named.selector)} does not name one element: {outcome.reason} on screen {look.id}, "
                "and on no screen exactly one",
                told(self._candidates.of(look, outcome.candidates), otherwise=_REREAD),
            )
        else:
            where = f" with {quoted(named.package)} in front" if named.package else ""
            self._issue(
                named.path,
                EvidenceCode.NO_EVIDENCE,
                f"{_shown(named.selector)} {_NEVER_SEEN}{where}",
                told(self._candidates.like(selector), otherwise=_REREAD),
            )

    def _in_order(self, named: Named) -> list[Look]:
        """The looks from that of the proof before on, as they were taken, for steps go the way that was walked; then
        the others. A field is seen so before it was typed into, and not after. First those of the app that the task has
        opened by then: another may have something of the same name."""
        reached = self._looks.index(self._reached) if self._reached is not None else len(self._looks) - 1
        order = [*reversed(self._looks[: reached + 1]), *self._looks[reached + 1 :]]
        front = self._fronts.get(named.step_path, "")
        return sorted(order, key=lambda look: bool(front) and look.snapshot.package != front)

    def _proved(self, named: Named, look: Look, node: Node) -> None:
        self._reached = look
        bounds = look.matcher.visible_bounds(node)
        self.evidence.append(
            Evidence(
                path=named.path,
                selector=named.selector.model_dump(mode="json", by_alias=True, exclude_none=True),
                snapshot=look.id,
                screen=look.words,
                element=look.called(node),
                bounds=(bounds.left, bounds.top, bounds.right, bounds.bottom),
            )
        )

    def _issue(self, path: str, code: EvidenceCode, message: str, hint: str) -> None:
        self.issues.append(Issue(path, code, message, hint))


def _opened_before(task: TaskTemplate) -> Mapping[str, str]:
    """The app that was opened last before each step, by the step's JSON Pointer."""
    fronts: dict[str, str] = {}
    front = ""
    for path, step in walk(task.steps):
        front = step.package_name if isinstance(step, OpenStep) else front
        fronts[path] = front
    return fronts


def _outcome(
    look: Look, named: Named, selector: Selector, around: Selector | None
) -> Matched | Disabled | Ambiguous | NotFound:
    """What the executor would have found on this look."""
    matcher = look.matcher
    match named.asked:
        case Asked.ONE | Asked.ONE_TO_TOUCH:
            return matcher.match(selector, touch=named.asked is Asked.ONE_TO_TOUCH)
        case Asked.SOME:
            found = matcher.all_visible(selector)
            if not isinstance(found, list):
                return found
            return Matched(found[0], matcher.visible_bounds(found[0])) if found else NotFound("nothing matches")
        case Asked.INSIDE:
            assert around is not None  # of a field that is read inside a node
            return _inside(look, selector, around)


def _inside(look: Look, selector: Selector, around: Selector) -> Matched | Ambiguous | NotFound:
    """Inside any of the step's nodes: a row may lack what others have, and then its output is empty."""
    rows = look.matcher.all_visible(around)
    if not isinstance(rows, list):
        return rows
    several: Ambiguous | None = None
    for row in rows:
        found = look.matcher.inside(selector, row)
        if isinstance(found, Ambiguous):
            several = several or found
        elif isinstance(found, list) and len(found) == 1:
            return Matched(found[0], look.matcher.visible_bounds(found[0]))
        elif isinstance(found, list) and found:
            several = several or Ambiguous(tuple(found), f"{len(found)} nodes match inside one node")
    return several or NotFound("nothing matches inside the step's node")


def _shown(selector: Selector) -> str:
    return quoted_json(json.loads(selector.model_dump_json(by_alias=True, exclude_none=True)))
