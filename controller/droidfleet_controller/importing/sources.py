"""Which form a file has, and its import. Pure; the flows that a Maestro flow runs come through a function."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from droidfleet_controller.importing.generic import EXAMPLE, TASK_TYPE, import_generic
from droidfleet_controller.importing.maestro import FlowReader, import_maestro, no_files
from droidfleet_controller.importing.report import Entry, ImportCode, Imported, What
from droidfleet_shared.protocol.jsontext import parse
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES


class Form(StrEnum):
    """The forms that can be imported."""

    GENERIC = "generic"
    MAESTRO = "maestro"


def form_of(data: bytes) -> Form:
    """The form of a file: JSON objects and lists are *generic_steps*, everything else is a Maestro flow."""
    return Form.GENERIC if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") else Form.MAESTRO


def import_file(
    data: bytes,
    *,
    form: Form,
    file: str,
    read: FlowReader = no_files,
    fallback_id: str = "imported",
    task_id: str | None = None,
    allow_points: bool = False,
) -> Imported:
    """A task template from the bytes of a file. Never raises for bad input.

    ``file`` is how the report calls a flow. ``task_id`` names the task, else the file's own `name`, else
    ``fallback_id``.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    if len(data) > MAX_DOCUMENT_BYTES:
        message = f"the file is larger than {MAX_DOCUMENT_BYTES // 1024} KiB"
        return _refused(ImportCode.TOO_LARGE, message, "Split it into several tasks.")
    match form:
        case Form.GENERIC:
            return _generic(data, fallback_id=fallback_id, task_id=task_id, allow_points=allow_points)
        case Form.MAESTRO:
            try:
                text = data.decode()
            except UnicodeDecodeError as error:
                message = f"the file is not UTF-8 text: byte {error.start} cannot be read"
                return _refused(ImportCode.BAD_YAML, message, "Save it as UTF-8.")
            return import_maestro(
                text, file=file, read=read, fallback_id=fallback_id, task_id=task_id, allow_points=allow_points
            )
        case _:
            assert_never(form)


def _generic(data: bytes, *, fallback_id: str, task_id: str | None, allow_points: bool) -> Imported:
    parsed = parse(data, max_bytes=MAX_DOCUMENT_BYTES)
    if parsed.findings:
        issues = [finding.issue() for finding in parsed.findings]
        entries = (Entry(issue.path, ImportCode.BAD_JSON, What.REFUSED, issue.message, issue.hint) for issue in issues)
        return Imported(None, tuple(entries))
    if isinstance(parsed.value, dict) and "schemaVersion" in parsed.value:
        message = "the file is a task of this project already"
        return _refused(ImportCode.UNKNOWN_FORM, message, "Check it with `droidfleet task validate`.")
    if isinstance(parsed.value, list) and len(parsed.value) > 1:
        message = f"the file holds {len(parsed.value)} tasks; one at a time is imported"
        hint = f'Save each as a file of its own: an object with `"task_type": "{TASK_TYPE}"`. For example: {EXAMPLE}'
        return _refused(ImportCode.UNKNOWN_FORM, message, hint)
    return import_generic(parsed.value, fallback_id=fallback_id, task_id=task_id, allow_points=allow_points)


def _refused(code: ImportCode, message: str, hint: str) -> Imported:
    return Imported(None, (Entry("", code, What.REFUSED, message, hint),))
