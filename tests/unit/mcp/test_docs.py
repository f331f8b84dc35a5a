"""docs/mcp.md names the tools that there are, and its configurations are what clients read."""

from __future__ import annotations

import json
import re
from pathlib import Path

from droidfleet_controller.mcp.serving import PATH
from droidfleet_controller.mcp.tools import tools

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "mcp.md").read_text()
PACKAGE = ROOT / "controller" / "droidfleet_controller" / "mcp"
OF_THE_API = {"INVALID_TASK", "FILE_UNREADABLE", "DEVICE_BUSY"}
"""Told by other pages."""


def test_the_table_names_every_tool_and_no_other() -> None:
    table = PAGE.partition("| tool | what |")[2].partition("\n\n")[0]
    named = {word for line in table.splitlines() if line.startswith("| `") for word in re.findall(r"`(\w+)`", line)}
    assert named == set(tools())


def test_the_configurations_are_json_and_name_the_server() -> None:
    blocks = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)]
    [by_program, by_url] = [each["mcpServers"]["droidfleet"] for each in blocks]
    assert (by_program["command"], by_program["args"]) == ("droidfleet", ["mcp"])
    assert by_url["url"].endswith(PATH)


def test_every_code_of_the_server_is_explained() -> None:
    sources = "".join(file.read_text() for file in PACKAGE.glob("*.py"))
    used = set(re.findall(r'(?:Error\(\s*|code=)"([A-Z_]+)"', sources)) - OF_THE_API
    explained = set(re.findall(r"`([A-Z_]{5,})`", PAGE.partition("## Codes")[2]))
    assert used <= explained, used - explained
