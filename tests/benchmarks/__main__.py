"""Runs the benchmarks: ``python -m benchmarks [NAME ...]``."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import json
import platform
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure

MODULES = (
    "driver_call",
    "matching",
    "observation",
    "designer_loop",
    "practice",
    "repeat_run",
    "task_run",
    "journal",
    "dispatch",
    "ingest",
    "planner_tick",
    "rollout_fleet",
    "agent_process",
)
REPORT = Path("build/bench.json")


def main() -> int:
    """Runs the named modules (all by default), prints the table, writes the report."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument(
        "modules", nargs="*", choices=[*MODULES, []], default=[], metavar="NAME", help=", ".join(MODULES)
    )
    names = parser.parse_args().modules or MODULES
    console = Console()
    table = Table(title="Droidfleet benchmarks")
    for column in ("figure", "value", "target", "met", "note"):
        table.add_column(column, justify="right" if column in ("value", "target") else "left")
    report: dict[str, object] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    for name in names:
        console.print(f"[dim]{name} ...[/]")
        start = time.monotonic()
        taken = importlib.import_module(f"benchmarks.{name}").figures()
        if inspect.isawaitable(taken):
            taken = asyncio.run(_await(taken))
        figures: list[Figure] = list(taken)
        report[name] = [{**asdict(figure), "met": figure.met} for figure in figures]
        for figure in figures:
            table.add_row(
                figure.name,
                f"{figure.value:,.3g} {figure.unit}",
                "" if figure.target is None else f"{'<=' if figure.better == 'lower' else '>='} {figure.target:g}",
                {None: "", True: "yes", False: "NO"}[figure.met],
                figure.note,
            )
        console.print(f"[dim]{name}: {time.monotonic() - start:.1f} s[/]")
    console.print(table)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(report, indent=2) + "\n")
    console.print(f"Written to {REPORT}")
    return 0


async def _await(taken: object) -> object:
    return await taken  # type: ignore[misc]  # narrowed by the caller


if __name__ == "__main__":
    sys.exit(main())
