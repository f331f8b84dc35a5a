"""Reads what people send as JSON text: what they ask for, and their versions of drafts. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue, ValidationError

from droidfleet_controller.drafts.record import DraftIssue
from droidfleet_designer.draft.draft import Brief
from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.pointers import pointer

MAX_BRIEF_BYTES = 64 * 1024
MAX_DRAFT_BYTES = 1024 * 1024
"""Of a person's version: a task of the largest size with its evidence."""


def read_brief(text: str) -> Brief:
    """What is asked for.

    Raises:
        InvalidInputError: ``INVALID_BRIEF``, with all issues.
    """
    if len(text.encode()) > MAX_BRIEF_BYTES:
        raise InvalidInputError("INVALID_BRIEF", f"the brief has more than {MAX_BRIEF_BYTES // 1024} KiB.")
    try:
        return Brief.model_validate_json(text)
    except ValidationError as error:
        issues = [
            DraftIssue(
                path=pointer(each["loc"]),
                code="INVALID_BRIEF",
                message=each["msg"].removeprefix("Value error, "),
            )
            for each in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        first = issues[0]
        raise InvalidInputError(
            "INVALID_BRIEF",
            f"the brief is not valid: {first.path or 'document'}: {first.message}",
            hint="A brief has description, device and settings; docs/designer.md describes it.",
            issues=issues,
        ) from None


def read_version(text: str) -> Mapping[str, JsonValue]:
    """A person's version of a draft.

    Raises:
        InvalidInputError: ``INVALID_DRAFT``: it is no JSON object.
    """
    problem = f"it has more than {MAX_DRAFT_BYTES // 1024} KiB"
    if len(text.encode(errors="replace")) <= MAX_DRAFT_BYTES:
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            problem = "it is no JSON"
        else:
            if isinstance(read, dict):
                return read
            problem = "it is no JSON object"
    raise InvalidInputError("INVALID_DRAFT", f"the draft cannot be read: {problem}.", hint="Nothing was changed.")
