"""Runs the history checker: ``python -m chaos --minutes 5 --seed 1``. Ends with 1 when it found something."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from chaos.plain_queue import PlainOutcome, comparisons, run_plain_queue
from chaos.plan import FULL, for_minutes
from chaos.report import write_report
from chaos.world import live_through

REPORT = Path("build/chaos")

PLAIN_PART = 1 / 3
"""Of the time, for each run of the plain queue: it is there for comparison."""

MOST_PLAIN_MINUTES = 3.0


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="of load and faults (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of load and faults (%(default)s)")
    parser.add_argument("--full", action="store_true", help="100,000 executions and 450 kills instead; takes hours")
    parser.add_argument("--no-plain", action="store_true", help="leave out the plain work-queue")
    parser.add_argument("--report", type=Path, default=REPORT, help="the folder for report.md and report.json")
    arguments = parser.parse_args()
    scale = FULL if arguments.full else for_minutes(arguments.minutes)
    folder = Path(tempfile.mkdtemp(prefix="droidfleet-chaos-"))
    minutes = scale.seconds / 60
    plain = [] if arguments.no_plain else _plain(arguments.seed, min(minutes * PLAIN_PART, MOST_PLAIN_MINUTES), folder)
    _tell(f"seed {arguments.seed}: {scale.executions:,} executions in {minutes:.0f} minutes; all is in {folder}")
    outcome = asyncio.run(live_through(arguments.seed, scale, _inside(folder, "run")))
    title = (
        "The full run: 100,000 executions under kills"
        if arguments.full
        else f"A scaled run: {minutes:g} minutes under kills"
    )
    report = write_report(arguments.report, title, outcome, plain)
    print(report.read_text())
    if not outcome.clean:
        _tell(f"seed {arguments.seed} FAILED; logs and data are in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _plain(seed: int, minutes: float, folder: Path) -> Sequence[PlainOutcome]:
    found: list[PlainOutcome] = []
    for number, (title, some, lanes) in enumerate(comparisons(for_minutes(minutes))):
        started = time.monotonic()
        run = run_plain_queue(seed, some, _inside(folder, f"plain-{number}"), title=title, lanes=lanes)
        found.append(asyncio.run(run))
        _tell(f"{title}: {found[-1].twice} of {found[-1].executions} twice, {time.monotonic() - started:.0f} s")
    return found


def _inside(folder: Path, name: str) -> Path:
    inside = folder / name
    inside.mkdir()
    return inside


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
