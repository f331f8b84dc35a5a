"""docs/cli.md names every command and every option, and none that does not exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from droidfleet_controller.cli.app import app

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"

whole = cache(get_command)


@cache
def commands() -> dict[str, set[str]]:
    """The long options of each command that does something, by its full name."""
    found: dict[str, set[str]] = {}
    root = whole(app)
    todo = [("droidfleet", root)]
    while todo:
        name, command = todo.pop()
        if isinstance(command, TyperGroup):
            todo += [(f"{name} {word}", child) for word, child in command.commands.items()]
            if not command.invoke_without_command or command is root:
                continue
        options = {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
        found[name] = {word for word in options if word.startswith("--")} - {"--help"}
    return found


@cache
def sections() -> dict[str, str]:
    parts = re.split(r"^### (droidfleet .*)$", PAGE.read_text().partition("## Shapes of the JSON")[0], flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_command_has_its_section() -> None:
    assert set(sections()) == set(commands())


@pytest.mark.parametrize("name", [name for name in sorted(commands()) if name != "droidfleet serve"])
def test_section_names_exactly_the_options_there_are(name: str) -> None:
    # `--nats` and the like belong to `serve`, which docs/operations.md describes.
    assert set(re.findall(r"--[a-z][a-z-]+", sections()[name])) == commands()[name]


@pytest.mark.parametrize("name", sorted(commands()))
def test_help_of_every_command_shows_examples(name: str) -> None:
    command = whole(app)
    for word in name.split()[1:]:
        assert isinstance(command, TyperGroup)
        command = command.commands[word]
    assert re.search(r"Examples?:", command.help or "")
