"""`python -m droidfleet_demo [--keep]`: tells the story and cleans up. Exits with 0 only if all was as expected."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from droidfleet_demo.processes import PartFailedError, Parts
from droidfleet_demo.story import say, tell

EXIT_UNEXPECTED = 1
EXIT_NOT_STARTED = 3
EXIT_INTERRUPTED = 130

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Runs the demo and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m droidfleet_demo", description="The demo of Droidfleet.")
    parser.add_argument("--keep", action="store_true", help="leave everything running afterwards, until Ctrl-C")
    keep: bool = parser.parse_args().keep
    for number in STOPPING:
        signal.signal(number, _interrupt)
    with tempfile.TemporaryDirectory(prefix="droidfleet-demo-") as name:
        folder = Path(name)
        parts = Parts(folder)
        held = False
        try:
            held = tell(folder, parts, keep=keep)
        except PartFailedError as error:
            say(f"\nFAILED: {error}")
            if error.log:
                say("Its last lines:\n" + "\n".join(f"  {line}" for line in error.log.splitlines()))
            return EXIT_NOT_STARTED
        except KeyboardInterrupt:
            say("\nStopping everything.")
            return EXIT_INTERRUPTED
        finally:
            with _uninterrupted():
                parts.stop_all()
    return 0 if held else EXIT_UNEXPECTED


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A second Ctrl-C must not leave anything running; each part's stop has a bound of its own."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
