"""What the phones saw against what was reported. Pure: documents and effect lines in, verdicts out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

ORDER_PLACED = "order_placed"

TOUCHES = frozenset({"tap", "long_press", "swipe", "drag", "set_text", "type_text", "key"})
"""Kinds of effect that come of one dispatched action each."""

TOAST = "toast"
"""An app's message that goes away by itself."""

SELECTORS = frozenset({"selector", "option", "to", "until", "unlessVisible", "requireVisible", "visible", "gone"})
"""The fields of a task in which a selector stands."""

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation and whether it held; ``seen`` says what was found."""

    what: str
    held: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Report:
    """What one phone's agent reported, as far as the checks need it."""

    device: str
    state: str
    code: str
    candidates: int
    dispatched: int
    order_number: str

    @classmethod
    def of(cls, execution: Document) -> Report:
        """Reads an execution document of `droidfleet execution ... -o json`."""
        result = execution.get("result")
        result = result if isinstance(result, dict) else {}
        steps = [step for step in result.get("steps", []) if isinstance(step, dict)]
        return cls(
            device=str(execution.get("device")),
            state=str(execution.get("state")),
            code=str(result.get("code", "")),
            candidates=len(steps[-1].get("candidates", [])) if steps else 0,
            dispatched=sum(int(step.get("dispatched", 0)) for step in steps),
            order_number=str(result.get("outputs", {}).get("orderNumber", "")),
        )


def check(
    reports: Sequence[Report], effects: Mapping[str, Sequence[Document]], *, twins: Collection[str]
) -> list[Check]:
    """All expectations of the demo.

    ``effects`` holds each device's effect log; ``twins`` are the devices whose shop has two buttons of one name.
    """
    checks: list[Check] = []
    for report in reports:
        felt = effects.get(report.device, ())
        orders = [_order(effect) for effect in felt if effect.get("kind") == ORDER_PLACED]
        touches = sum(1 for effect in felt if effect.get("kind") in TOUCHES)
        if report.device in twins:
            checks += [
                Check(
                    f"{report.device} stopped with TARGET_AMBIGUOUS and named its candidates",
                    (report.state, report.code) == ("FAILED", "TARGET_AMBIGUOUS") and report.candidates == 2,
                    f"{report.state} {report.code}, {report.candidates} candidates",
                ),
                Check(f"{report.device} placed no order", orders == [], f"orders {orders}"),
            ]
        else:
            checks += [
                Check(
                    f"{report.device} placed exactly one order and reported its number",
                    report.state == "SUCCEEDED" and [report.order_number] == [f"Order {order}" for order in orders],
                    f"{report.state} {report.code}, reported {report.order_number!r}, orders {orders}",
                ),
            ]
        checks.append(
            Check(
                f"{report.device} felt as many touches as were dispatched",
                touches == report.dispatched and touches > 0,
                f"{touches} touches, {report.dispatched} dispatched",
            )
        )
    return checks


def orders(effects: Sequence[Document]) -> int:
    """How many orders a phone placed."""
    return sum(1 for effect in effects if effect.get("kind") == ORDER_PLACED)


def app_effects(effects: Sequence[Document]) -> Counter[str]:
    """How often a phone's apps reported each kind of effect, such as a search; what was only shown aside."""
    return Counter(str(each["kind"]) for each in effects if each.get("origin") == "app" and each.get("kind") != TOAST)


def unproved(task: Document, evidence: Sequence[Document]) -> list[str]:
    """The places of a draft's selectors for which it gives no evidence, as JSON Pointers."""
    proved = {each.get("path") for each in evidence}
    return [path for path in _selectors(task.get("steps"), "/steps") if path not in proved]


def _selectors(value: object, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for place, each in enumerate(value):
            yield from _selectors(each, f"{path}/{place}")
    if isinstance(value, dict):
        for key, each in value.items():
            if key in SELECTORS:
                yield f"{path}/{key}"
            else:
                yield from _selectors(each, f"{path}/{key}")


def _order(effect: Document) -> str:
    details = effect.get("details")
    return str(details.get("order", "")) if isinstance(details, dict) else ""
