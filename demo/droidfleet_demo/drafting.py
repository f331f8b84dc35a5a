"""A task that nobody wrote: drafted from a sentence, tried, accepted, and rolled out to every phone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from droidfleet_demo.checks import Check, Document, app_effects, unproved
from droidfleet_demo.fleet import Fleet

DRAFT_ID = "cable-price"
DESCRIPTION = (
    'On all phones, open Harbour Goods, search for "USB-C cable", tap "USB-C cable 2 m" and read the product price.'
)
OUTPUT, PRICE = "product_price", "$9.90"
SEARCHED = "searched"

Show = Callable[..., int]
"""Runs a `droidfleet` command before the reader's eyes; gives its exit code."""


def drafted(fleet: Fleet, show: Show) -> list[Check]:
    """Tells this part of the story; what came of it."""
    explored = fleet.phones[0].name
    before = {phone.name: app_effects(phone.effects()) for phone in fleet.phones}
    show("draft", "start", DESCRIPTION, "--device", explored, "--name", DRAFT_ID, "--watch")
    (listed,) = fleet.ask("draft", "list")
    draft_id = str(_objects(listed["drafts"])[0]["draftId"])
    show("draft", "try", draft_id)
    show("draft", "accept", draft_id, "--use", "rollout", "--yes")
    (accepted,) = fleet.ask("draft", "show", draft_id)
    exit_code = show("rollout", "watch", str(_object(accepted.get("accepted")).get("rolloutId", "")))
    after = {phone.name: app_effects(phone.effects()) for phone in fleet.phones}
    more = {name: dict(after[name] - before[name]) for name in after}
    # The explored phone did it three times: while it was explored, in the trial, in the rollout.
    wanted = {phone.name: {SEARCHED: 3 if phone.name == explored else 1} for phone in fleet.phones}
    return [
        *_of_draft(_object(accepted.get("draft"))),
        _of_trial(_objects(accepted["trials"])),
        _of_rollout(fleet, exit_code),
        Check("each phone felt exactly what the sentence asks for", more == wanted, f"{more}"),
    ]


def _of_draft(draft: Document) -> list[Check]:
    notes = draft.get("notes")
    named = isinstance(notes, list) and any("no language model" in str(note) for note in notes)
    missing = unproved(_object(draft.get("task")), _objects(draft.get("evidence")))
    return [
        Check("the draft says that rules made it, and no language model", named, f"{notes}"),
        Check("the draft names nothing that was not seen on the phone", not missing, f"without evidence: {missing}"),
    ]


def _of_trial(trials: Sequence[Document]) -> Check:
    result = _object(trials[-1].get("result")) if trials else {}
    outputs = _object(result.get("outputs"))
    held = (result.get("code"), outputs.get(OUTPUT)) == ("OK", PRICE)
    return Check("its trial read the price", held, f"{result.get('code')}, {outputs}")


def _of_rollout(fleet: Fleet, exit_code: int) -> Check:
    (listed,) = fleet.ask("execution", "list", "--task", DRAFT_ID)
    runs = {str(each["runId"]) for each in _objects(listed["executions"])}  # the trial's is one of them
    ended = [each for run in runs for each in fleet.ask("execution", "watch", "--run", run)]
    read = [_object(_object(each.get("result")).get("outputs")).get(OUTPUT) for each in ended]
    held = exit_code == 0 and len(read) == len(fleet.phones) + 1 and set(read) == {PRICE}
    return Check("the rollout read it on each phone", held, f"exit code {exit_code}, {read}")


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, object]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
