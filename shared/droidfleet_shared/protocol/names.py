"""The kinds of text that fields hold: labels, patterns, packages, ids. Lengths in characters."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Text = Annotated[str, Field(min_length=1, max_length=4096)]
"""A label as people read it; literal, never syntax."""

MAX_PATTERN_LENGTH = 512

Pattern = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN_LENGTH)]
"""A full-match regular expression of bounded cost."""

REFERENCE = r"\$\{(?:inputs|outputs)\.[A-Za-z_][A-Za-z0-9_]*\}"
"""A reference to a value (protocol section 1). A text that holds one is checked again once it is substituted."""

NAME_PATTERN = r"^[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?$"
"""Ids and names are printed, logged and compared exactly: no control characters, no white space around them."""

PACKAGE_PATTERN = rf"^([A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*|.*{REFERENCE}.*)$"
ACTIVITY_PATTERN = rf"^(\.?[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*|.*{REFERENCE}.*)$"
OUTPUT_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"

MAX_NAME_LENGTH = 128
"""Of ids, and of the names of inputs, outputs and artifacts."""

PackageName = Annotated[str, Field(min_length=1, max_length=255, pattern=PACKAGE_PATTERN)]
"""An Android application id; the bare word `android` is one too (the system's own dialogs)."""

ActivityName = Annotated[str, Field(min_length=1, max_length=255, pattern=ACTIVITY_PATTERN)]
StepId = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=NAME_PATTERN)]
OutputField = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=OUTPUT_PATTERN)]
InputName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=OUTPUT_PATTERN)]
