"""The sentences of the loop to the model, from `prompts/told.LANGUAGE.md`. Pure, but for the file."""

from __future__ import annotations

from functools import partial

from droidfleet_designer.prompts.sentences import sentence
from droidfleet_designer.prompts.sentences import template as _template

template = partial(_template, "told")
"""What is said under a code, as it stands in the file: ``(code, language)``."""

told = partial(sentence, "told")
"""What is said under a code, with ``{NAME}`` replaced by each value: ``(code, language, **values)``."""
