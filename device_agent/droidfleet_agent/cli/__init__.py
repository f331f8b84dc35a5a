"""`droidfleet-agent`: the commands `exec`, `tree`, `run` and `supervise`.

Owns the program's frame; each command is a module with ``add_parser`` and ``run``. Only the command that is called is
imported, so that an agent starts quickly and stays small.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn

_COMMANDS = {
    "exec": "run a task file on one phone, with no fleet",
    "tree": "show what is on a phone's screen, with selectors",
    "run": "run the fleet agent of one phone",
    "supervise": "run one fleet agent for each attached phone",
}

EXIT_INTERRUPTED = 130

_EXAMPLES = """examples:
  droidfleet-agent exec task.json --serial R58M123ABC
  droidfleet-agent tree --serial R58M123ABC
  droidfleet-agent run --name phone-01 --serial R58M123ABC --nats nats://127.0.0.1:7422
  droidfleet-agent supervise --nats nats://127.0.0.1:7422 --name R58M123ABC=phone-01

exit codes: 0 all well; 1 the task failed; 2 wrong usage or input; 3 something needed does not answer;
4 not found, taken, or refused; 5 a defect; 130 interrupted"""


def main(arguments: Sequence[str]) -> int:
    """Runs one command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="droidfleet-agent",
        description="Runs protocol v1 tasks on Android phones: for a fleet, or one by hand.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"droidfleet-agent {version('droidfleet')}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    called = next((argument for argument in arguments if not argument.startswith("-")), "")
    for name, summary in _COMMANDS.items():
        if name == called:
            import_module(f"droidfleet_agent.cli.{name}").add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    parsed = parser.parse_args(arguments)
    code: int = parsed.run(parsed)
    return code


def entry() -> NoReturn:
    """The console script. A Ctrl-C before the command is there to handle it ends it quietly."""
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
