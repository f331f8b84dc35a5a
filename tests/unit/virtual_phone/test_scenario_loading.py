"""Scenario files load as written: shipped ones, variants, generated lists, the documentation's examples, the schema."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from droidfleet_agent.virtual_phone.scenario.loader import load_scenario, parse_scenario, shipped_scenarios
from droidfleet_agent.virtual_phone.scenario.schema import main, scenario_schema, schema_text
from unit.virtual_phone.phones import Hand, document_of, screen

DOCS = Path(__file__).parents[3] / "docs"
SHIPPED = resources.files("droidfleet_agent.virtual_phone") / "scenarios"
VARIANTS = [(name, variant) for name in shipped_scenarios() for variant in (None, *load_scenario(name).variants)]
EXAMPLES = re.findall(r"```yaml\n(format: 1\n.*?)```", (DOCS / "scenarios.md").read_text(encoding="utf-8"), re.DOTALL)


def test_five_scenarios_are_shipped() -> None:
    assert shipped_scenarios() == ("chat", "game", "login", "settings", "shop")


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_shipped_scenario_starts_with_its_app_in_front(name: str, variant: str | None) -> None:
    scenario = load_scenario(name, variant=variant)

    assert Hand(scenario).phone.focus().package == scenario.start


@pytest.mark.parametrize("name", shipped_scenarios())
def test_shipped_file_reads_the_same_with_the_slow_parser(name: str) -> None:
    text = (SHIPPED / f"{name}.yaml").read_bytes()

    assert yaml.safe_load(text) == yaml.load(text, Loader=yaml.CSafeLoader)


@pytest.mark.parametrize("name", shipped_scenarios())
def test_shipped_file_holds_the_schema(name: str) -> None:
    document = yaml.load((SHIPPED / f"{name}.yaml").read_bytes(), Loader=yaml.CSafeLoader)

    assert list(Draft202012Validator(scenario_schema()).iter_errors(document)) == []


def test_committed_schema_is_what_the_models_say() -> None:
    committed = (DOCS / "scenario.schema.json").read_text(encoding="utf-8")

    assert committed == schema_text(), "run the module scenario.schema with docs/scenario.schema.json"


def test_schema_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    main([str(tmp_path / "s.json")])

    Draft202012Validator.check_schema(json.loads((tmp_path / "s.json").read_text(encoding="utf-8")))


def test_documentation_has_examples() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_documentation_loads_and_runs(example: str) -> None:
    assert Hand(parse_scenario(example)).phone.dump()


def test_json_is_read_like_yaml() -> None:
    document = document_of({"type": "text", "text": "A"})

    assert parse_scenario(json.dumps(document)) == parse_scenario(yaml.safe_dump(document))


def test_file_is_loaded_from_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(document_of({"type": "text", "text": "A"})), encoding="utf-8")

    assert load_scenario(path).name == "test"


def test_generated_list_has_its_cycle_and_its_numbers() -> None:
    rows = {"generate": {"count": 3, "item": "{{name}} {{number}}", "cycle": {"name": ["Ada", "Bo"]}}}
    hand = screen(
        {"type": "list", "items": "rows", "row": {"type": "text", "text": "{{item}}"}}, variables={"rows": rows}
    )

    assert hand.texts() == ["Ada 1", "Bo 2", "Ada 3"]


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        ({"change": "insert_before", "widgets": [{"type": "text", "text": "new"}]}, ["a", "new", "b", "c"]),
        ({"change": "insert_after", "widgets": [{"type": "text", "text": "new"}]}, ["a", "b", "new", "c"]),
        ({"change": "replace", "widgets": [{"type": "text", "text": "new"}]}, ["a", "new", "c"]),
        ({"change": "remove"}, ["a", "c"]),
        ({"change": "merge", "fields": {"text": "new"}}, ["a", "new", "c"]),
    ],
)
def test_variant_patches_the_widget_it_names(change: dict[str, object], texts: list[str]) -> None:
    widgets = [{"type": "text", "text": word, "name": word} for word in "abc"]
    document = {**document_of(*widgets), "variants": {"v": {"patches": [{"screen": "main", "widget": "b", **change}]}}}

    assert Hand(parse_scenario(yaml.safe_dump(document), variant="v")).texts() == texts


def test_variant_reaches_into_rows_and_dialogs() -> None:
    document = {
        **document_of(
            {
                "type": "list",
                "items": "rows",
                "row": {"type": "row", "children": [{"type": "text", "text": "A", "name": "t"}]},
            },
            variables={"rows": [1]},
        ),
        "variants": {
            "v": {
                "patches": [
                    {"screen": "main", "widget": "t", "change": "merge", "fields": {"text": "B"}},
                ]
            }
        },
    }

    assert Hand(parse_scenario(yaml.safe_dump(document), variant="v")).texts() == ["B"]


def test_variant_gives_variables_other_first_values() -> None:
    document = {
        **document_of({"type": "text", "text": "{{greeting}}"}, variables={"greeting": "Hello"}),
        "variants": {"v": {"variables": {"greeting": "你好"}}},
    }

    assert Hand(parse_scenario(yaml.safe_dump(document), variant="v")).texts() == ["你好"]
