"""docs/mcp.md names the tools that there are, and its configurations are what clients read."""

from __future__ import annotations

import json
import re
from pathlib import Path

from droidfleet_controller.mcp.serving import PATH
from droidfleet_controller.mcp.tools import tools

PAGE = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text()


def test_the_table_names_every_tool_and_no_other() -> None:
    table = PAGE.partition("| tool | what |")[2].partition("\n\n")[0]
    named = {word for line in table.splitlines() if line.startswith("| `") for word in re.findall(r"`(\w+)`", line)}
    assert named == set(tools())


def test_the_configurations_are_json_and_name_the_server() -> None:
    blocks = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)]
    [by_program, by_url] = [each["mcpServers"]["droidfleet"] for each in blocks]
    assert (by_program["command"], by_program["args"]) == ("droidfleet", ["mcp"])
    assert by_url["url"].endswith(PATH)
