"""`droidfleet task explain`: what a task does, what it can take, and what its values are. Needs no controller."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from droidfleet_controller.cli import documents
from droidfleet_controller.cli.failures import issue_text
from droidfleet_controller.cli.options import Output, OutputOption, WordsOption
from droidfleet_controller.cli.output import emit, show
from droidfleet_controller.cli.text import escape
from droidfleet_shared.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from droidfleet_controller.cli.documents import IssueLike
    from droidfleet_shared.protocol.effects import EffectWords
    from droidfleet_shared.protocol.issues import Validation
    from droidfleet_shared.protocol.pointers import Json
    from droidfleet_shared.protocol.task import TaskTemplate


def explain_task(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A task document; - reads standard input.")],
    *,
    given: Annotated[
        list[str] | None, typer.Option("--input", metavar="NAME=VALUE", help="The value of an input; repeatable.")
    ] = None,
    lang: Annotated[Literal["en", "zh"], typer.Option(help="The language of the explanation.")] = "en",
    words: WordsOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say what a task does, how long and how often it acts at most, and what its values are. Needs no controller.

    Exits with 2 when the document is not valid, and prints what is wrong as `task validate` does.

    \b
    Examples:
      droidfleet task explain examples/shop-order.json
      droidfleet task explain task.json --lang zh --input item="green tea"
      cat task.json | droidfleet task explain - -o json
    """
    # The validator's models take longer to load than all the rest of this program.
    from droidfleet_controller.cli.explaining import explanation_document, explanation_view  # noqa: PLC0415
    from droidfleet_controller.cli.sources import read_bytes  # noqa: PLC0415
    from droidfleet_controller.tasks.words import load_words  # noqa: PLC0415
    from droidfleet_shared.protocol.explain import explain  # noqa: PLC0415

    outcome = _validated(read_bytes(file), given or [], load_words(words))
    if outcome.task is None:
        print_issues(file, outcome.errors, outcome.warnings, output)
        raise typer.Exit(ExitCode.INVALID)
    explanation = explain(outcome.task, outcome.document, language=lang)
    if output is not Output.TABLE:
        emit(explanation_document(explanation, outcome.warnings, language=lang), output)
    else:
        show(explanation_view(explanation, outcome.warnings, language=lang))


def print_issues(file: str, errors: Sequence[IssueLike], warnings: Sequence[IssueLike], output: Output) -> None:
    """What the validator says of a document."""
    if output is not Output.TABLE:
        issues = {"errors": documents.issue_documents(errors), "warnings": documents.issue_documents(warnings)}
        emit({"valid": not errors, **issues}, output)
        return
    for issue in errors:
        sys.stdout.write(f"{issue_text(issue)}\n")
    for issue in warnings:
        sys.stdout.write(f"warning: {issue_text(issue)}\n")
    count = len(errors)
    verdict = "valid" if not count else f"{count} error{'s' * (count != 1)}"
    sys.stdout.write(f"{escape(file)}: {verdict}{f', {len(warnings)} to look at' if warnings else ''}\n")


def _validated(text: bytes, given: Sequence[str], words: EffectWords) -> Validation[TaskTemplate]:
    """The document, with the values in it."""
    from droidfleet_shared.input_values import collect_values, declared_types  # noqa: PLC0415
    from droidfleet_shared.protocol.validate import validate_document  # noqa: PLC0415

    outcome = validate_document(text, words=words)
    document = outcome.document
    if not given or not isinstance(document, dict):
        return outcome
    values = collect_values(declared_types(document), pairs=given, file=None, secrets=())
    before = document.get("inputValues")
    merged: Json = {**before, **values} if isinstance(before, dict) else dict(values)
    return validate_document(json.dumps(document | {"inputValues": merged}), words=words)
