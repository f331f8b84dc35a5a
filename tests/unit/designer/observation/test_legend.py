"""What the model is told of how to read a screen names every mark that a line may bear, in each language."""

from __future__ import annotations

from importlib.resources import files

import pytest


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "mark", ["`desc`", "`#title`", "`holds`", "`->`", "`~>`", "`~`", "`!`", "`…+120`", "`\\u003c`"]
)
def test_the_legend_explains_each_mark(language: str, mark: str) -> None:
    legend = (files("droidfleet_designer.prompts") / f"observation.{language}.md").read_text(encoding="utf-8")

    assert mark in legend
