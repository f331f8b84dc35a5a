"""Every mistake in a scenario file has a place, a code, and a hint that leads on."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import pytest
import yaml

from droidfleet_agent.virtual_phone.scenario.issues import Issue, ScenarioError
from droidfleet_agent.virtual_phone.scenario.loader import MAX_BYTES, load_scenario, parse_scenario
from unit.virtual_phone.phones import document_of

ROOT = "/apps/0/screens/main/root"


def issues(document: object, *, variant: str | None = None) -> list[Issue]:
    text = document if isinstance(document, str) else yaml.safe_dump(document)
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, variant=variant)
    found = [issue for issue in caught.value.issues if isinstance(issue, Issue)]
    assert found
    return found


@pytest.mark.parametrize(
    ("widget", "path", "code", "hint"),
    [
        ({"type": "buton", "text": "A"}, "/type", "UNKNOWN_WIDGET", "'button'"),
        ({"text": "A"}, "/type", "MISSING_FIELD", "There are"),
        ({"type": "text"}, "/text", "MISSING_FIELD", ""),
        ({"type": "text", "text": "A", "stile": "title"}, "/stile", "UNKNOWN_FIELD", "'style'"),
        ({"type": "text", "text": "A", "style": "titel"}, "/style", "BAD_VALUE", "'title'"),
        ({"type": "text", "text": ["A"]}, "/text", "WRONG_TYPE", ""),
        ({"type": "text", "text": "{{name"}, "/text", "BAD_TEMPLATE", ""),
        ({"type": "text", "text": "{{na me}}"}, "/text", "BAD_TEMPLATE", ""),
        ({"type": "text", "text": "{{name|shout}}"}, "/text", "BAD_TEMPLATE", ""),
        ({"type": "text", "text": "{{nane}}"}, "/text", "UNKNOWN_VARIABLE", "'name'"),
        ({"type": "text", "text": "A", "visible_when": "nane"}, "/visible_when", "UNKNOWN_VARIABLE", "'name'"),
        ({"type": "text", "text": "A", "visible_when": {"eq": 1}}, "/visible_when", "UNKNOWN_CONDITION", ""),
        ({"type": "text", "text": "A", "weight": -1}, "/weight", "OUT_OF_RANGE", ""),
        ({"type": "text", "text": "A", "width": "wide"}, "/width", "BAD_VALUE", ""),
        ({"type": "text", "text": "A", "color": "reddish"}, "/color", "BAD_VALUE", ""),
        ({"type": "text", "text": "A", "on_click": [{"goto": "main"}]}, "/on_click/0", "UNKNOWN_ACTION", "'go'"),
        ({"type": "text", "text": "A", "on_click": [{"go": "mian"}]}, "/on_click/0/go", "UNKNOWN_SCREEN", "'main'"),
        ({"type": "text", "text": "A", "on_click": [{"dialog": "x"}]}, "/on_click/0/dialog", "UNKNOWN_DIALOG", ""),
        ({"type": "text", "text": "A", "on_click": [{"focus": "x"}]}, "/on_click/0/focus", "UNKNOWN_NAME", ""),
        (
            {"type": "text", "text": "A", "on_click": [{"open_app": "com.a.b"}]},
            "/on_click/0/open_app",
            "UNKNOWN_APP",
            "",
        ),
        ({"type": "text", "text": "A", "on_click": [{"toast": 1, "x": 2}]}, "/on_click/0/x", "UNKNOWN_FIELD", ""),
        (
            {"type": "text", "text": "A", "on_click": [{"set": {"nane": 1}}]},
            "/on_click/0/set/nane",
            "UNKNOWN_VARIABLE",
            "'name'",
        ),
        (
            {"type": "text", "text": "A", "on_click": [{"if": "nane", "then": []}]},
            "/on_click/0/if",
            "UNKNOWN_VARIABLE",
            "'name'",
        ),
        (
            {"type": "text", "text": "A", "on_click": [{"after_ms": 5, "do": [{"toast": "{{x}}"}]}]},
            "/on_click/0/do/0/toast",
            "UNKNOWN_VARIABLE",
            "name",
        ),
        ({"type": "field", "bind": "nane"}, "/bind", "UNKNOWN_VARIABLE", "'name'"),
        ({"type": "list", "items": "rows"}, "", "MISSING_FIELD", ""),
        (
            {"type": "list", "items": "rows", "as": "name", "row": {"type": "text", "text": "A"}},
            "/as",
            "DUPLICATE_NAME",
            "",
        ),
        (
            {"type": "list", "items": "rows", "row": {"type": "text", "text": "{{itme}}"}},
            "/row/text",
            "UNKNOWN_VARIABLE",
            "'item'",
        ),
        ({"type": "column", "children": [{"type": "text", "text": 1, "x": 1}]}, "/children/0/x", "UNKNOWN_FIELD", ""),
        ({"type": "tabs", "tabs": []}, "/tabs", "OUT_OF_RANGE", ""),
    ],
)
def test_broken_widget_is_named_with_place_code_and_hint(
    widget: Mapping[str, object], path: str, code: str, hint: str
) -> None:
    found = issues(document_of(widget, variables={"name": "", "rows": []}))

    assert [(issue.path, issue.code) for issue in found] == [(f"{ROOT}/children/0{path}", code)]
    assert hint in found[0].hint


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"format": 2}, "/format", "BAD_VALUE"),
        ({"start": "com.example.other"}, "/start", "UNKNOWN_APP"),
        ({"name": "has space"}, "/name", "BAD_VALUE"),
        ({"apps": []}, "/apps", "OUT_OF_RANGE"),
        ({"varaints": {}}, "/varaints", "UNKNOWN_FIELD"),
    ],
)
def test_broken_document_is_named_with_place_and_code(change: Mapping[str, object], path: str, code: str) -> None:
    found = issues({**document_of({"type": "text", "text": "A"}), **change})

    assert [(issue.path, issue.code) for issue in found] == [(path, code)]


def test_every_mistake_is_reported_not_only_the_first() -> None:
    found = issues(document_of({"type": "txt"}, {"type": "text"}, {"type": "text", "text": "a", "y": 1}))

    assert [issue.code for issue in found] == ["UNKNOWN_WIDGET", "MISSING_FIELD", "UNKNOWN_FIELD"]


def test_error_text_names_the_first_mistake_and_counts_the_others() -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(yaml.safe_dump(document_of({"type": "txt"}, {"type": "text"})), source="my.yaml")

    assert "my.yaml" in str(caught.value)
    assert "and 1 more" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("format: [1", "BAD_YAML"),
        ("format: 1\nformat: 1", "BAD_YAML"),
        ("1: a", "BAD_YAML"),
        ("- 1", "WRONG_TYPE"),
        ("", "WRONG_TYPE"),
        ("a: .nan", "BAD_VALUE"),
        ("a: .inf", "BAD_VALUE"),
        ("a: !!python/object/apply:os.getcwd []", "BAD_YAML"),
        ("a: " + "[" * 80 + "]" * 80, "TOO_DEEP"),
        ("#" * (MAX_BYTES + 1), "TOO_LARGE"),
    ],
)
def test_text_that_is_no_bounded_document_is_refused(text: str, code: str) -> None:
    assert [issue.code for issue in issues(text)] == [code]


def test_alias_bomb_is_refused_before_it_is_expanded() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    assert [issue.code for issue in issues("\n".join(levels))] == ["TOO_LARGE"]


def test_two_widgets_of_one_name_are_refused() -> None:
    found = issues(document_of({"type": "text", "text": "A", "name": "x"}, {"type": "text", "text": "B", "name": "x"}))

    assert [issue.code for issue in found] == ["DUPLICATE_NAME"]


@pytest.mark.parametrize(
    ("variant", "path", "code"),
    [
        ({"variables": {"nane": 1}}, "/variants/v/variables/nane", "UNKNOWN_VARIABLE"),
        (
            {"patches": [{"screen": "main", "widget": "bx", "change": "remove"}]},
            "/variants/v/patches/0/widget",
            "UNKNOWN_NAME",
        ),
        (
            {"patches": [{"screen": "mian", "widget": "box", "change": "remove"}]},
            "/variants/v/patches/0/screen",
            "UNKNOWN_SCREEN",
        ),
        (
            {"patches": [{"dialog": "d", "widget": "box", "change": "remove"}]},
            "/variants/v/patches/0/dialog",
            "UNKNOWN_DIALOG",
        ),
        (
            {"patches": [{"app": "com.a.b", "screen": "main", "widget": "box", "change": "remove"}]},
            "/variants/v/patches/0/app",
            "UNKNOWN_APP",
        ),
        (
            {"patches": [{"screen": "main", "widget": "box", "change": "drop"}]},
            "/variants/v/patches/0/change",
            "BAD_VALUE",
        ),
        ({"patchs": []}, "/variants/v/patchs", "UNKNOWN_FIELD"),
    ],
)
def test_broken_variant_is_named_when_it_is_asked_for(variant: Mapping[str, object], path: str, code: str) -> None:
    document = document_of({"type": "text", "text": "A", "name": "box"}, variables={"name": ""})

    found = issues({**document, "variants": {"v": variant}}, variant="v")

    assert [(issue.path, issue.code) for issue in found] == [(path, code)]


def test_unknown_variant_suggests_the_nearest() -> None:
    document = {**document_of({"type": "text", "text": "A"}), "variants": {"twin": {}}}

    assert "'twin'" in issues(document, variant="twim")[0].hint


def test_generated_list_reports_what_is_wrong_with_its_pattern() -> None:
    document = document_of({"type": "text", "text": "A"}, variables={"rows": {"generate": {"count": 0, "item": "x"}}})

    found = issues(document)

    assert [(issue.path, issue.code) for issue in found] == [("/apps/0/variables/rows/generate/count", "OUT_OF_RANGE")]


def test_unknown_scenario_name_suggests_a_shipped_one() -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario("shpo")

    assert "shop" in str(caught.value)


def test_issue_leaves_the_document_unchanged() -> None:
    document = document_of({"type": "text", "text": "A", "name": "box"}, variables={"name": ""})
    before = copy.deepcopy(document)
    issues({**document, "variants": {"v": {"variables": {"x": 1}}}}, variant="v")

    assert document == before
