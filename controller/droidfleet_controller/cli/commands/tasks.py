"""`droidfleet task`: check, keep and run tasks."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from droidfleet_controller.cli import documents, tables
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.commands.explain import explain_task, print_issues
from droidfleet_controller.cli.commands.import_task import import_task
from droidfleet_controller.cli.commands.run import all_issues, run_task
from droidfleet_controller.cli.completion import complete_task
from droidfleet_controller.cli.failures import issue_text
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption, RevisionOption, WordsOption
from droidfleet_controller.cli.output import emit, note, show
from droidfleet_controller.cli.text import escape
from droidfleet_shared.exit_codes import ExitCode

app = typer.Typer(no_args_is_help=True, help="Check, keep and run tasks.")

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A task document; - reads standard input.")]


@app.command("validate")
def validate_task(file: FileArgument, *, words: WordsOption = None, output: OutputOption = Output.TABLE) -> None:
    """Check a task document and print everything that is wrong with it. Needs no controller.

    Exits with 2 when the document is not valid. Warnings stop nothing.

    \b
    Examples:
      droidfleet task validate examples/shop-order.json
      cat task.json | droidfleet task validate - -o json
    """
    # The validator's models take longer to load than all the rest of this program.
    from droidfleet_controller.cli.sources import read_bytes  # noqa: PLC0415
    from droidfleet_controller.tasks.words import load_words  # noqa: PLC0415
    from droidfleet_shared.protocol.validate import validate_document  # noqa: PLC0415

    outcome = validate_document(read_bytes(file), words=load_words(words))
    print_issues(file, outcome.errors, outcome.warnings, output)
    if not outcome.valid:
        raise typer.Exit(ExitCode.INVALID)


app.command("explain")(explain_task)
app.command("import")(import_task)


@app.command("save")
def save_task(file: FileArgument, *, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """Store a task in the library under its taskId, as a new revision when its text is new.

    \b
    Examples:
      droidfleet task save examples/shop-order.json
    """
    from droidfleet_controller.cli.sources import read_text  # noqa: PLC0415 - loads the protocol's models

    text = read_text(file)
    with ControllerClient(api) as client, all_issues(client, text):
        answer = client.save_task(text)
    if output is not Output.TABLE:
        warnings = documents.issue_documents(answer.warnings)
        emit({"task": documents.task_document(answer.task), "created": answer.created, "warnings": warnings}, output)
        return
    for issue in answer.warnings:
        sys.stderr.write(f"warning: {issue_text(issue)}\n")
    what = "saved" if answer.created else "unchanged"
    sys.stdout.write(f"{escape(answer.task.task_id)} revision {answer.task.revision}: {what}\n")


@app.command("list")
def list_tasks(*, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """List the newest revision of each task in the library.

    \b
    Examples:
      droidfleet task list
      droidfleet task list -o yaml
    """
    with ControllerClient(api) as client:
        items = list(client.tasks())
    if output is not Output.TABLE:
        emit({"tasks": [documents.task_document(item) for item in items]}, output)
    elif items:
        show(tables.tasks(items))
    else:
        note("No tasks yet: `droidfleet task save FILE` keeps one.")


@app.command("show")
def show_task(
    task_id: Annotated[str, typer.Argument(help="The task's id.", autocompletion=complete_task)],
    *,
    revision: RevisionOption = 0,
    document: Annotated[bool, typer.Option("--document", help="Only the text, exactly as it was saved.")] = False,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Show a task of the library.

    \b
    Examples:
      droidfleet task show shop-order
      droidfleet task show shop-order --revision 1 --document > shop-order.json
    """
    with ControllerClient(api) as client:
        item = client.task(task_id, revision=revision)
    if document:
        sys.stdout.buffer.write(item.document_json.encode())
    elif output is Output.TABLE:
        show(tables.task_facts(item))
        sys.stdout.write("\n" + "\n".join(escape(line) for line in item.document_json.splitlines()) + "\n")
    else:
        emit(documents.task_document(item), output)


app.command("run")(run_task)
