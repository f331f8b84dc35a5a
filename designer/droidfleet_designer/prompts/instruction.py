"""What a model is told first: the same for every exploration in a language, so that servers remember it."""

from __future__ import annotations

from functools import cache

from droidfleet_designer.prompts.load import prompt
from droidfleet_designer.prompts.reference import reference


@cache
def instruction(language: str) -> str:
    """The whole of it: the work, the protocol with its fields, and how to read a screen. ``language``: en or zh."""
    protocol = prompt("protocol", language).replace("{reference}", reference())
    return "\n\n".join([prompt("system", language), protocol, prompt("observation", language)])
