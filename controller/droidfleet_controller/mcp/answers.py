"""What a tool answers with: text, a picture, facts for programs. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from droidfleet_designer.ports import Shot
from droidfleet_designer.tools.tool import Outcome, OutcomeKind
from droidfleet_shared.errors import DroidfleetError


@dataclass(frozen=True, slots=True)
class ToolResult:
    """An answer. ``code``: a stable word where the call did not do what was asked for; ``facts``: for programs."""

    text: str
    code: str = ""
    shot: Shot | None = None
    facts: Mapping[str, object] | None = None


def of_outcome(outcome: Outcome) -> ToolResult:
    """What came of a call on a leased phone."""
    code = "" if outcome.kind is OutcomeKind.RESULT else outcome.code or outcome.kind.value.upper()
    facts = {"outcome": outcome.kind.value, "code": outcome.code}
    return ToolResult(outcome.text, code=code, shot=outcome.shot, facts=facts)


def of_error(error: DroidfleetError) -> ToolResult:
    """A call that was refused."""
    hint = f" {error.hint}" if error.hint else ""
    return ToolResult(f"{error.code}: {error.message}{hint}", code=error.code)
