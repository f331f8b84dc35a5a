"""Maestro's texts: variables in them, and labels that are regular expressions there and literal here.

Maestro compares a label with the whole text, the hint and the description of a node, without regard to case, as a
regular expression or as it is written. `${...}` is JavaScript; what is only the name of a variable becomes an input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from droidfleet_controller.importing.building import Step
from droidfleet_controller.importing.report import ImportCode, Scope
from droidfleet_shared.protocol.names import MAX_PATTERN_LENGTH
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.regexes import BadPatternError, compile_pattern
from droidfleet_shared.protocol.task import MAX_INPUTS
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.protocol.wording import cut, name, quoted, shown

COPIED = "copiedText"
"""The output that `copyTextFrom` writes and `pasteText` reads, as Maestro's one clipboard."""

_EXPRESSION = re.compile(r"\\?\$\{([^}]*)\}?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OUR_REFERENCE = re.compile(r"\$\{(?:inputs|outputs)\.\w+\}")
_META = re.compile(r"[\\^$.|?*+()\[\]{}]")
_SENTENCE = re.compile(r"(?<=\w)(?:\.{1,3}|\?)(?=\s|$)")
"""The end of a sentence, which nobody meant as an expression."""


@dataclass(slots=True)
class Variables:
    """The variables of a flow and those that it runs, which become inputs of the task."""

    inputs: dict[str, Json] = field(default_factory=dict)
    copied: bool = False
    """Whether a text was copied before."""

    def declare(self, scope: Scope, place: Place, env: Mapping[str, Json]) -> None:
        """Takes the `env` of a flow: each variable becomes an input with that default."""
        for variable, value in env.items():
            if not _VARIABLE.fullmatch(variable):
                message = f"{name(variable)} cannot be the name of an input"
                scope.refused((*place, variable), ImportCode.BAD_VALUE, message, "Use letters, digits and `_`.")
            elif isinstance(value, list | dict):
                message = f"the value of {name(variable)} is no text"
                scope.refused((*place, variable), ImportCode.WRONG_TYPE, message, "Write a text.")
            elif isinstance(value, str) and "${" in value:
                message = f"the value of {name(variable)} is computed: {shown(value)}"
                scope.refused((*place, variable), ImportCode.JAVASCRIPT, message, "Write the value itself.")
            else:
                self._declare(scope, (*place, variable), variable, str(value or ""))

    def _declare(self, scope: Scope, place: Place, variable: str, value: str | None) -> None:
        known = self.inputs.get(variable)
        before = known.get("default") if isinstance(known, dict) else None
        if value is not None and before is not None and before != value:
            message = f"{name(variable)} has the value {shown(before)} already, and an input has one value in a task"
            scope.refused(place, ImportCode.NOT_SUPPORTED, message, "Use another name for the other value.")
            return
        if known is not None and value is None:
            return
        if known is None and len(self.inputs) >= MAX_INPUTS:
            message = f"the flow has more than {MAX_INPUTS} variables"
            scope.refused(place, ImportCode.TOO_LARGE, message, "Split the flow.")
            return
        self.inputs[variable] = {"type": "string"} if value is None else {"type": "string", "default": value}
        message = f"the variable {name(variable)} became an input"
        hint = f"Give its value when it is run: --input {variable}=VALUE" + (
            "." if value is None else "; without it the value in the file is used. Make a password a `secret`."
        )
        scope.normalised(place, ImportCode.INPUT_DECLARED, message, hint)

    def text(self, scope: Scope, place: Place, text: str) -> str | None:
        """A text with its variables as references; None when it holds JavaScript, which is reported."""
        problems: list[str] = []

        def reference(found: re.Match[str]) -> str:
            if found[0].startswith("\\"):
                return f"$${found[0][2:]}"
            expression = found[1].strip()
            if expression == "maestro.copiedText" and self.copied:
                return f"${{outputs.{COPIED}}}"
            if not _VARIABLE.fullmatch(expression) or not found[0].endswith("}"):
                problems.append(found[0])
                return ""
            self._declare(scope, place, expression, None)
            return f"${{inputs.{expression}}}"

        made = _EXPRESSION.sub(reference, text)
        for problem in problems:
            message = f"{quoted(cut(problem))} is JavaScript, which no task runs"
            hint = "Write the value, or the name of one variable alone, as in `${NAME}`; its value is given at the run."
            scope.refused(place, ImportCode.JAVASCRIPT, message, hint)
        return None if problems else made


def text_fields(scope: Scope, place: Place, text: str, *, exact: bool) -> Step | None:
    """The selector fields for a label whose variables are references already; None when it is wrong.

    ``exact``: it must also match in another case, since what it asks for must *not* be there.
    """
    literal = _SENTENCE.sub("", _OUR_REFERENCE.sub("", text))
    if not _META.search(literal):
        return {"textMatches": f"(?i){_quoted(text)}"} if exact else {"text": text}
    pattern = f"(?i){text}"
    try:
        compiled = compile_pattern(_OUR_REFERENCE.sub("x", pattern.replace("$${", "[$][{]")))
    except BadPatternError as error:
        message = f"the label {shown(text)} is a regular expression that is not accepted: {error.reason}"
        hint = "Write the label literally, or an expression without this."
        scope.refused(place, ImportCode.BAD_REGEX, message, hint)
        return None
    if not compiled.fullmatch(normalise(text)) and "${" not in text:
        # Maestro also takes a label for itself: `Total (2)` is found although the expression means `Total 2`.
        both = f"(?i)(?:{text}|{_quoted(text)})"
        pattern = both if len(both) <= MAX_PATTERN_LENGTH else pattern
    message = f"the label {shown(text)} is a regular expression and becomes `textMatches`"
    scope.normalised(place, ImportCode.SPELLING, message, "If it was meant literally, write `text` instead.")
    return {"textMatches": pattern}


def _quoted(text: str) -> str:
    """The text as a pattern for itself, references left as they are."""
    text = text.replace("$${", "${")  # escaped below in another way: backslashes stand between the two
    references = _OUR_REFERENCE.findall(text)
    parts = [re.sub(r"([\\^$.|?*+()\[\]{}])", r"\\\1", part) for part in _OUR_REFERENCE.split(text)]
    return parts[0] + "".join(f"{reference}{part}" for reference, part in zip(references, parts[1:], strict=True))
