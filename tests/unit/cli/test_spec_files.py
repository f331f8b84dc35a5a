"""Reading documents of rollouts and schedules: JSON and YAML mean the same, and what neither may hold is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from droidfleet_controller.cli import spec_files
from droidfleet_controller.cli.spec_files import names_spec, read_spec
from droidfleet_shared.errors import InvalidInputError

WANTED = {
    "task": "shop-order",
    "waves": [{"size": 1}, {"size": "10%", "gate": {"soak": "90s"}}, {}],
    "window": {"start": "0 22 * * *", "stop": "0 6 * * *"},
    "from": "2027-03-28T02:30:00",
}

YAML = """\
# nightly
task: shop-order
waves:
  - size: 1
  - size: 10%
    gate: {soak: 90s}
  - {}
window:
  start: 0 22 * * *
  stop: 0 6 * * *
from: 2027-03-28T02:30:00
"""

JSON = """\
{"task": "shop-order", "waves": [{"size": 1}, {"size": "10%", "gate": {"soak": "90s"}}, {}],
 "window": {"start": "0 22 * * *", "stop": "0 6 * * *"}, "from": "2027-03-28T02:30:00"}
"""


def written(folder: Path, text: str | bytes) -> str:
    file = folder / "document"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


@pytest.mark.parametrize("text", [YAML, JSON, "\ufeff" + JSON, "\n  " + JSON], ids=["yaml", "json", "mark", "blank"])
def test_both_forms_mean_the_same(tmp_path: Path, text: str) -> None:
    assert read_spec(written(tmp_path, text)) == WANTED


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ('{"task": "a", "task": "b"}', "BAD_JSON", ""),
        ('{"task": }', "BAD_JSON", ""),
        ("task: a\ntask: b\n", "BAD_YAML", "'task' stands twice (line 1"),
        ("a: &x 1\nb: *x\n", "BAD_YAML", "references (*name) are not read (line 2"),
        ("1: one\n", "BAD_YAML", "a name is no text"),
        ("a: [1, 2\n", "BAD_YAML", "line"),
        ("a: !!python/object:os.system x\n", "BAD_YAML", "line"),
        ("- a\n- b\n", "BAD_YAML", "not one object"),
        ("", "BAD_YAML", "not one object"),
        (b"a: \xff\n", "BAD_YAML", ""),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(
    tmp_path: Path, text: str | bytes, code: str, says: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_spec(written(tmp_path, text))
    assert refused.value.code == code
    assert says in refused.value.message


def test_an_error_quotes_nothing_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_spec(written(tmp_path, "inputs:\n  pin: [hunter2\n"))
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec_files, "MAX_SPEC_BYTES", 10)
    with pytest.raises(InvalidInputError) as refused:
        read_spec(written(tmp_path, "task: shop-order\n"))
    assert refused.value.code == "TOO_LARGE"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_spec(str(tmp_path / "none.yaml"))
    assert (refused.value.code, "none.yaml" in refused.value.message) == ("FILE_UNREADABLE", True)


@pytest.mark.parametrize(
    ("source", "is_file"),
    [("-", True), ("r.yaml", True), ("r.yml", True), ("r.json", True), ("./r", True), ("shop-order", False)],
)
def test_what_means_a_file(source: str, is_file: bool) -> None:
    assert names_spec(source) is is_file
