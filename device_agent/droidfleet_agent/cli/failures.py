"""From any error to what the user of `droidfleet-agent` reads. Never decides on a message."""

from __future__ import annotations

from collections.abc import Sequence

from droidfleet_shared.errors import DroidfleetError, InvalidInputError

_ISSUE_FIELDS = ("path", "code", "message", "hint")


def error_text(error: DroidfleetError) -> str:
    """``CODE: message``, one line for each issue, and what to do next. Safe to print on a terminal."""
    issues = error.issues if isinstance(error, InvalidInputError) else ()
    listed = [tuple(str(getattr(issue, name, "")) for name in _ISSUE_FIELDS) for issue in issues]
    lines = [f"{error.code}: {_without_issues(error.message, listed)}"]
    for where, code, message, hint in listed:
        lines.append(f"  {where or '(document)'} {code}: {message}")
        if hint:
            lines.append(f"      {hint}")
    if error.hint and all(error.hint != hint for *_, hint in listed):
        lines.append(f"hint: {error.hint}")
    return "\n".join(printable(line) for line in lines)


def _without_issues(message: str, issues: Sequence[tuple[str, ...]]) -> str:
    """A message alone in a log quotes its first issue; here all of them stand below it."""
    if not any(text and text in message for _where, _code, text, _hint in issues):
        return message
    what, _colon, _first = message.partition(": ")
    return f"{what}: {len(issues)} error{'s' * (len(issues) != 1)}."


def printable(text: str) -> str:
    """The text on one line, with whatever could act on a terminal written as an escape. Text from a screen is data."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "backslashreplace").decode()
        for character in text
    )
