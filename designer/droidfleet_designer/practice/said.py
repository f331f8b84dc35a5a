"""The planner's sentences, from `prompts/practice.LANGUAGE.md`."""

from __future__ import annotations

from functools import partial

from droidfleet_designer.prompts.sentences import sentence

said = partial(sentence, "practice")
"""What is said under a code, with ``{NAME}`` replaced by each value: ``(code, language, **values)``."""
