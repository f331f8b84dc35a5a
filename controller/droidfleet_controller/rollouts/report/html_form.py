"""The report for people: one HTML page with the pictures of failures in it, for a phone, a laptop or paper.

The page loads nothing and runs nothing; a policy in it says so to the browser too.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from droidfleet_controller.rollouts.report.material import Material
from droidfleet_controller.rollouts.report.words import WORDS, Language
from droidfleet_controller.rollouts.rollout import DRY_RUN_WAVE, Decision
from droidfleet_controller.rollouts.states import FAILURES, Outcome
from droidfleet_controller.rollouts.views import RolloutView

TEMPLATE = "report.html.jinja"

MAX_DECISIONS = 2_000
"""Lines that somebody still scrolls through; a page of all can be too heavy for a phone."""

MAX_VALUE = 500
"""Characters of a value that are shown; the whole one is in the other forms."""


@dataclass(frozen=True, slots=True)
class Totals:
    """How many phones; the dry run is none of them."""

    phones: int
    succeeded: int
    failed: int

    @property
    def rest(self) -> int:
        """Those that are neither."""
        return self.phones - self.succeeded - self.failed


async def write(material: Material, now: datetime, *, language: Language) -> AsyncIterator[str]:
    """The page in pieces."""
    rollout = material.view.rollout
    decisions, more = await _decisions(material)
    pieces = _template().generate_async(
        material=material,
        view=material.view,
        rollout=rollout,
        title=rollout.spec.name or f"{rollout.subject.task_id} {rollout.subject.revision}",
        totals=totals(material.view),
        failures=await material.failures(pictures=True),
        decisions=decisions,
        more_decisions=more,
        document=json.dumps(
            rollout.spec.model_dump(mode="json", by_alias=True, exclude_none=True), ensure_ascii=False, indent=2
        ),
        language=language,
        words=WORDS[language],
        now=now,
    )
    async for piece in pieces:
        yield piece


def totals(view: RolloutView) -> Totals:
    """What the waves count together."""
    waves = [wave for wave in view.waves if wave.number != DRY_RUN_WAVE]
    return Totals(
        phones=sum(wave.members for wave in waves),
        succeeded=sum(wave.outcomes.get(Outcome.SUCCEEDED, 0) for wave in waves),
        failed=sum(count for wave in waves for outcome, count in wave.outcomes.items() if outcome in FAILURES),
    )


async def _decisions(material: Material) -> tuple[list[Decision], bool]:
    """The first ones, and whether there are more."""
    found: list[Decision] = []
    async for decision in material.decisions():
        if len(found) == MAX_DECISIONS:
            return found, True
        found.append(decision)
    return found, False


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("droidfleet_controller.rollouts.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        enable_async=True,
        trim_blocks=True,
    )
    environment.filters |= {"moment": _moment, "seconds": _seconds, "shown": _shown}
    return environment.get_template(TEMPLATE)


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1_000:.1f} s"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else text[:MAX_VALUE] + "…"
