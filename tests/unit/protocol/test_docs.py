"""The pages of `docs/protocol` say what the code does: examples validate, tables list what there is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic.fields import FieldInfo

from droidfleet_shared.protocol.codes import Detail, StepCode, ValidationCode, WarningCode
from droidfleet_shared.protocol.condition import COMPARISONS, KINDS, Condition
from droidfleet_shared.protocol.result import ResultModel, StepResult, TaskResult
from droidfleet_shared.protocol.schema import JsonSchema, schema_of
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS, StepBase
from droidfleet_shared.protocol.steps.reading import Attribute, ExtractField
from droidfleet_shared.protocol.task import InputDeclaration, Task
from droidfleet_shared.protocol.validate import validate_document
from unit.protocol.documents import click, task

DOCS = Path(__file__).parents[3] / "docs" / "protocol"
PAGES = {str(page.relative_to(DOCS)): page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))}
EXAMPLES = [(name, block) for name, text in PAGES.items() for block in re.findall(r"```json\n(.*?)```", text, re.S)]

Row = list[str]


def section(page: str, heading: str) -> str:
    """The text under a heading, up to the next of its level."""
    _, _, rest = f"\n{PAGES[page]}".partition(f"\n## {heading}\n")
    assert rest, f"{page} has no section {heading!r}"
    return rest.partition("\n## ")[0]


def table(page: str, heading: str) -> dict[str, Row]:
    """The first table of a section, by the words in backquotes of its first column."""
    rows: dict[str, Row] = {}
    for line in section(page, heading).splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            for word in re.findall(r"`(.+?)`", cells[0]):
                assert word not in rows, f"{page}: {word} twice"
                rows[word] = cells
    return rows


def as_document(example: Any) -> Any:  # JSON
    """An example that is a step, a selector or a condition, as a whole task."""
    if "schemaVersion" in example:
        return example
    if set(example) <= {*KINDS, *COMPARISONS}:
        read = {"id": "r", "action": "EXTRACT_TEXT", "selector": {"text": "x"}, "outputField": "total"}
        return task(read, {"id": "a", "action": "ASSERT", "condition": example})
    return task(example if "action" in example else click(selector=example))


@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_example_of_the_documentation_is_valid(page: str, example: str) -> None:
    outcome = validate_document(json.dumps(as_document(json.loads(example))))
    assert outcome.errors == (), page


def test_every_action_has_a_page_with_an_example_of_it() -> None:
    pages = [(name, as_document(json.loads(block))) for name, block in EXAMPLES if name.startswith("actions")]
    found = {document["steps"][0]["action"]: name for name, document in pages}
    assert found == {action: f"actions/{action}.md" for action in IMPLEMENTED_ACTIONS}


def agrees(rows: dict[str, Row], fields: dict[str, FieldInfo], schema: JsonSchema) -> None:
    """A table of fields has exactly these fields, their defaults and their ranges."""
    assert set(rows) == {field.alias or name for name, field in fields.items()}
    for name, field in fields.items():
        word = field.alias or name
        default, rule = rows[word][2], rows[word][3]
        if field.default_factory is not None:
            expected = "empty"
        else:
            expected = (
                "required" if field.is_required() else "none" if field.default is None else json.dumps(field.default)
            )
        assert default == expected, word
        described = schema["properties"][word]
        for bound in ("minimum", "maximum", "maxLength", "maxItems"):
            assert bound not in described or str(described[bound]) in rule, (word, bound)


def test_table_of_the_task_is_the_model() -> None:
    agrees(table("task.md", "Fields"), dict(Task.model_fields), schema_of(Task))


def test_table_of_the_common_fields_is_the_model() -> None:
    rows = table("task.md", "Fields of every step")
    assert re.findall(r"`(\w+)`", rows.pop("action")[3]) == list(IMPLEMENTED_ACTIONS)
    agrees(rows, dict(StepBase.model_fields), schema_of(Task)["$defs"]["BackStep"])


@pytest.mark.parametrize("action", IMPLEMENTED_ACTIONS)
def test_table_of_the_action_is_the_model(action: str) -> None:
    model = IMPLEMENTED_ACTIONS[action]
    own = {name: field for name, field in model.model_fields.items() if name not in {*StepBase.model_fields, "action"}}
    agrees(table(f"actions/{action}.md", "Fields"), own, schema_of(Task)["$defs"][model.__name__])


@pytest.mark.parametrize("action", IMPLEMENTED_ACTIONS)
def test_page_of_the_action_says_what_differs_of_the_common_fields(action: str) -> None:
    text = PAGES[f"actions/{action}.md"]
    model = IMPLEMENTED_ACTIONS[action]
    for name, common in StepBase.model_fields.items():
        own = model.model_fields[name]
        if own.is_required() != common.is_required():
            assert f"`{own.alias}` is the app" in text
            assert "it is required" in " ".join(text.split())
        elif own.default != common.default:
            assert f"`{own.alias}` is {own.default} when it is left out" in text


@pytest.mark.parametrize("action", IMPLEMENTED_ACTIONS)
def test_codes_of_the_action_are_codes_and_details(action: str) -> None:
    named = set(re.findall(r"`([A-Z_]+)`", section(f"actions/{action}.md", "Codes")))
    assert named <= {*StepCode, *Detail}
    assert "OK" in named
    assert named & ({*Detail} - {""})
    if IMPLEMENTED_ACTIONS[action].touches:
        assert {"ACTION_FAILED", "OUTCOME_UNKNOWN"} <= named


def test_table_of_a_field_to_extract_is_the_model() -> None:
    schema = schema_of(Task)["$defs"]["ExtractField"]
    rows = table("actions/EXTRACT.md", "One of `fields`")
    agrees(rows, dict(ExtractField.model_fields), schema)
    assert {*Attribute} <= set(re.findall(r"`(\w+)`", rows["attribute"][3]))


def test_table_of_the_selector_is_the_model() -> None:
    assert list(table("selectors.md", "Fields")) == [field.alias for field in Selector.model_fields.values()]


@pytest.mark.parametrize(("heading", "model"), [("Result of a task", TaskResult), ("Result of a step", StepResult)])
def test_tables_of_the_results_are_the_models(heading: str, model: type[ResultModel]) -> None:
    assert set(table("results-and-codes.md", heading)) == {field.alias for field in model.model_fields.values()}


def test_tables_of_the_codes_are_the_enums() -> None:
    page = "results-and-codes.md"
    assert list(table(page, "Validation errors")) == [code.value for code in ValidationCode]
    assert list(table(page, "Warnings")) == [code.value for code in WarningCode]
    assert [*table(page, "Codes of steps"), *table(page, "Codes of tasks only")] == [code.value for code in StepCode]
    assert list(table(page, "Details")) == [detail.value for detail in Detail if detail.value]


def test_table_of_the_condition_is_the_model() -> None:
    assert set(table("conditions.md", "Fields")) == {field.alias for field in Condition.model_fields.values()}


def test_table_of_an_input_is_the_model() -> None:
    schema = schema_of(Task)["$defs"]["InputDeclaration"]
    agrees(table("values.md", "Inputs"), dict(InputDeclaration.model_fields), schema)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_pages_and_headings(page: str) -> None:
    for link in re.findall(r"\]\((?!http)([^)]+)\)", PAGES[page]):
        path, _, anchor = link.partition("#")
        target = (DOCS / page).parent / path
        assert target.exists(), link
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.M) if anchor else []
        assert not anchor or anchor in [heading.lower().replace(" ", "-") for heading in headings], link
