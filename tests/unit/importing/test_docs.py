"""docs/importing.md says what the code does: its examples are imported, its tables name what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

from droidfleet_controller.importing import generic, generic_steps, keys, maestro, maestro_commands
from droidfleet_controller.importing.maestro import import_maestro
from droidfleet_controller.importing.report import What
from droidfleet_controller.importing.sources import Form

PAGE = (Path(__file__).parents[3] / "docs" / "importing.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def section(title: str) -> str:
    return PAGE.partition(f"\n{title}\n")[2].partition("\n## ")[0].partition("\n### ")[0]


def table(title: str) -> dict[str, str]:
    """The first two columns of the table in a section."""
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section(title), re.M))


def test_the_flow_of_the_page_becomes_the_task_of_the_page() -> None:
    (flow,) = blocks("yaml")
    assert import_maestro(flow, fallback_id="sign-in").document == json.loads(blocks("json")[-1])


def test_every_type_of_step_is_in_the_table_with_what_it_becomes() -> None:
    rows = table("### Types of steps")
    assert set(rows) == set(generic.TYPES)
    for kind, becomes in rows.items():
        example = generic_steps.LEAVES[kind].example if kind in generic_steps.LEAVES else generic.CONTAINERS[kind]
        made = generic.import_generic({"params": {"steps": [json.loads(example)]}}, allow_points=True).document
        assert made is not None
        assert isinstance(made["steps"], list)
        (step,) = made["steps"]
        assert isinstance(step, dict)
        assert str(step["action"]) in becomes


def test_every_command_is_in_the_table() -> None:
    assert set(table("### Commands")) == {*maestro_commands.COMMANDS, *maestro.CONTAINERS}


def test_every_command_that_is_refused_is_listed() -> None:
    listed = section("### Commands").partition("Refused, because")[2].partition(";")[0]
    assert re.findall(r"`(\w+)`", listed) == list(maestro_commands.NOT_SUPPORTED)


def test_the_page_lists_every_key_and_selector_type() -> None:
    text = section("### Types of steps")
    assert re.findall(r"`([A-Z_]+)`", text.partition("Keys: ")[2]) == list(keys.KEY_NAMES)
    listed = text.partition("`selector_type` is ")[2].partition("; in `if_el`")[0]
    assert re.findall(r"`(\w+)`", listed) == list(generic_steps.SELECTOR_TYPES)


def test_the_page_gives_the_numbers_of_the_code() -> None:
    assert f"nested more than {generic.MAX_DEPTH} deep, more than {generic.MAX_NODES} steps" in PAGE
    assert f"at most {maestro.MAX_FLOW_DEPTH} deep,\n{maestro.MAX_FLOWS} in all" in PAGE
    looked_s, optional_s = maestro_commands.LOOKUP_MS // 1000, maestro_commands.OPTIONAL_LOOKUP_MS // 1000
    assert f"{looked_s} s, and {optional_s} s when `optional`" in PAGE


def test_the_page_names_every_form_and_every_outcome() -> None:
    assert [word for word in (*What, *Form) if word not in PAGE] == []
    assert [field for field in generic.ASIDE if f"`{field}`" not in section("### What is kept aside")] == []
