"""Reads the documents of rollouts and schedules, JSON or YAML, from a file or standard input. Reads; never judges."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.jsontext import parse
from droidfleet_shared.protocol.pointers import Json

STDIN = "-"

MAX_SPEC_BYTES = 8 * 1024 * 1024
"""Half of what the controller takes as one request: values for 10,000 phones fit."""

SUFFIXES = (".json", ".yaml", ".yml")

TASK_FIELDS = frozenset({"schemaVersion", "steps"})
"""What no rollout has and every task."""


class _Loader(yaml.SafeLoader):
    """YAML as JSON knows it: a name stands once, a time is a text, nothing is repeated by reference."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        names = [self.construct_object(name, deep=True) for name, _ in node.value]
        if not all(isinstance(name, str) for name in names):
            raise yaml.MarkedYAMLError(problem="a name is no text; put it in quotes", problem_mark=node.start_mark)
        for place, name in enumerate(names):
            if name in names[:place]:
                raise yaml.MarkedYAMLError(problem=f"{name!r} stands twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="references (*name) are not read", problem_mark=self.get_mark())
        return super().compose_node(parent, index)


def _as_text(loader: _Loader, node: yaml.ScalarNode) -> object:
    return loader.construct_scalar(node)


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _as_text)


def names_spec(source: str) -> bool:
    """Whether the argument means a file: ``-``, something that exists, or something spelt like a path."""
    return source == STDIN or source.endswith(SUFFIXES) or "/" in source or Path(source).is_file()


def read_spec(source: str) -> dict[str, Json]:
    """The document of a file, or of standard input for ``-``: JSON where the text begins with a brace, else YAML.

    Raises:
        InvalidInputError: ``FILE_UNREADABLE``, ``TOO_LARGE``, ``BAD_JSON``, ``BAD_YAML``; whether the fields are right
            is the controller's to say.
    """
    data = _read(source)
    if len(data) > MAX_SPEC_BYTES:
        raise InvalidInputError(
            "TOO_LARGE",
            f"{source!r} is larger than {MAX_SPEC_BYTES // 1024 // 1024} MiB.",
            hint="Keep values for single phones in a CSV file: --inputs-csv FILE.",
        )
    document = _json(source, data) if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else _yaml(source, data)
    if not isinstance(document, dict):
        raise InvalidInputError(
            "BAD_YAML", f"{source!r} is not one object.", hint="Write names and values, for example `task: shop-order`."
        )
    return document


def _read(source: str) -> bytes:
    if source == STDIN:
        return sys.stdin.buffer.read(MAX_SPEC_BYTES + 1)
    try:
        with Path(source).open("rb") as file:
            return file.read(MAX_SPEC_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(
            "FILE_UNREADABLE",
            f"the file {source!r} cannot be read: {error.strerror}.",
            hint="Name an existing file, or - for standard input.",
        ) from error


def _json(source: str, data: bytes) -> Json:
    parsed = parse(data, max_bytes=MAX_SPEC_BYTES)
    if parsed.findings:
        issues = [finding.issue() for finding in parsed.findings]
        raise InvalidInputError("BAD_JSON", f"{source!r} cannot be read as JSON.", issues=issues)
    return parsed.value


def _yaml(source: str, data: bytes) -> Json:
    try:
        document: Json = yaml.load(data, _Loader)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # The whole text of such an error quotes the file, which may hold secrets.
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise InvalidInputError(
            "BAD_YAML", f"{source!r} cannot be read as YAML: {problem}{where}.", hint="Write it as JSON or YAML."
        ) from None
    return document
