"""Values from a command line: typed as declared, from files, and secrets from nowhere that others can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from droidfleet_shared.errors import DeniedError, DroidfleetError, InvalidInputError
from droidfleet_shared.input_values import collect_values, declared_types, secret_variable
from droidfleet_shared.protocol.pointers import Json

DECLARED: dict[str, Json] = {
    "item": "string",
    "count": "integer",
    "price": "number",
    "gift": "boolean",
    "pin": "secret",
}


def collect(
    *pairs: str, file: str | None = None, secrets: tuple[str, ...] = (), answer: str = "", **environ: str
) -> dict[str, Json]:
    return collect_values(
        DECLARED, pairs=pairs, file=file, secrets=secrets, environ=environ, ask=lambda _question: answer
    )


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("item=green tea", "green tea"),
        ("item=", ""),
        ("item=a=b", "a=b"),
        ("item=7", "7"),
        ("count=-3", -3),
        ("price=3", 3),
        ("price=3.50", 3.5),
        ("price=1e3", 1000.0),
        ("gift=true", True),
        ("gift=false", False),
        ("itme=tea", "tea"),
    ],
)
def test_a_value_has_the_declared_type(pair: str, value: Json) -> None:
    [read] = collect(pair).values()
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    "pair", ["count=3x", "count=", "count=3.0", "price=nan", "price=1e999", "gift=yes", "gift=True", "item", "=x", ""]
)
def test_what_does_not_fit_is_refused(pair: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        collect(pair)
    assert caught.value.code == "BAD_INPUT"


def test_a_name_is_given_once() -> None:
    with pytest.raises(InvalidInputError, match="given twice"):
        collect("item=a", "item=b")


def test_a_secret_on_the_command_line_is_refused_and_not_repeated() -> None:
    with pytest.raises(DeniedError) as caught:
        collect("pin=hunter2")
    assert caught.value.code == "SECRET_ON_COMMAND_LINE"
    assert "hunter2" not in str(caught.value)


def test_a_secret_comes_from_the_environment_else_it_is_asked_for() -> None:
    assert collect(secrets=("pin",), answer="typed", DROIDFLEET_SECRET_PIN="kept") == {"pin": "kept"}
    assert collect(secrets=("pin",), answer="typed") == {"pin": "typed"}


def test_a_secret_without_a_value_is_missing() -> None:
    with pytest.raises(InvalidInputError) as caught:
        collect(secrets=("pin",))
    assert caught.value.code == "SECRET_MISSING"
    assert "DROIDFLEET_SECRET_PIN" in caught.value.hint


def test_what_is_not_declared_as_secret_is_not_taken_as_one() -> None:
    with pytest.raises(InvalidInputError, match="not as secret"):
        collect(secrets=("item",), DROIDFLEET_SECRET_ITEM="x")


def test_names_become_names_of_variables() -> None:
    assert secret_variable("shop-pin.2") == "DROIDFLEET_SECRET_SHOP_PIN_2"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("values.json", '{"item": "tea", "count": 2, "pin": "hunter2"}'),
        ("values.yaml", "item: tea\ncount: 2\npin: hunter2\n"),
    ],
)
def test_a_file_holds_values_and_the_line_goes_over_them(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert collect("count=3", file=str(file)) == {"item": "tea", "count": 3, "pin": "hunter2"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "[1]"),
        ("a.json", '{"pin": "hunter2", "pin": "hunter2"}'),
        ("a.json", '{"pin": "hunter2"'),
        ("a.json", '{"pin": ["hunter2"]}'),
        ("a.json", '{"pin": null}'),
        ("a.yaml", "pin: hunter2\npin: hunter2"),
        ("a.yaml", "pin: [hunter2"),
        ("a.yaml", "pin: 2026-01-01"),
        ("a.yaml", "pin: .inf"),
        ("a.yaml", "- hunter2"),
        ("a.yaml", "!!python/object:os.system hunter2"),
        ("a.yaml", "1: hunter2"),
        ("a.yaml", "? [a]\n: hunter2"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_and_not_repeated(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InvalidInputError) as caught:
        collect(file=str(file))
    assert caught.value.code == "BAD_INPUT"
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_not_there_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(DroidfleetError) as caught:
        collect(file=str(tmp_path / "none.json"))
    assert caught.value.code == "FILE_UNREADABLE"


@pytest.mark.parametrize("document", [None, [], {}, {"inputs": 3}, {"inputs": {"a": 1}}])
def test_of_a_document_without_readable_declarations_nothing_is_known(document: Json) -> None:
    assert declared_types(document) == {}


def test_declared_types_are_read_from_the_raw_document() -> None:
    assert declared_types({"inputs": {"a": {"type": "integer"}}}) == {"a": "integer"}
