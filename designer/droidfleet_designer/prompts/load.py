"""Reads the prompts."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str, language: str) -> str:
    """The text of ``NAME.LANGUAGE.md``, without white space around it.

    Raises:
        FileNotFoundError: there is none such.
    """
    return (files("droidfleet_designer.prompts") / f"{name}.{language}.md").read_text(encoding="utf-8").strip()
