"""The report of a run, for people (Markdown) and programs (JSON)."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from chaos.checker import DOUBT, Doubt, Sin
from chaos.plain_queue import PlainOutcome
from chaos.world import Outcome

SHOWN_DOUBTS = 200


def write_report(folder: Path, title: str, outcome: Outcome, plain: Sequence[PlainOutcome]) -> Path:
    """Writes ``report.md`` and ``report.json``; the former's path."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "title": title,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": outcome.seed,
        "scale": asdict(outcome.scale),
        "executions": outcome.verdict.executions,
        "effects": outcome.verdict.effects,
        "states": dict(outcome.verdict.states),
        "faults": {f"{lane} {kind}": count for (lane, kind), count in sorted(outcome.done.items())},
        "findings": [asdict(finding) for finding in outcome.verdict.findings],
        "unknown": [asdict(doubt) for doubt in outcome.verdict.doubts],
        "refused": outcome.refused,
        "crashes": outcome.crashes,
        "left": outcome.left,
        "loadSeconds": round(outcome.load_s, 1),
        "healSeconds": round(outcome.heal_s, 1),
        "plainQueue": [asdict(each) for each in plain],
    }
    (folder / "report.json").write_text(json.dumps(document, indent=2) + "\n")
    file = folder / "report.md"
    file.write_text(text(title, outcome, plain))
    return file


def text(title: str, outcome: Outcome, plain: Sequence[PlainOutcome]) -> str:
    """The report for people."""
    verdict = outcome.verdict
    lines = [
        f"# {title}",
        "",
        _how(outcome),
        "",
        *_table(outcome, plain),
        "",
    ]
    lines += ["States: " + ", ".join(f"{count:,} {state}" for state, count in sorted(verdict.states.items())) + ".", ""]
    if verdict.doubts:
        lines += ["## Failed, with causes", "", *_doubts(outcome), ""]
    problems = [*outcome.histories, *outcome.refused, *outcome.crashes, *([outcome.left] if outcome.left else [])]
    if problems:
        lines += ["## What must not be", ""]
        for problem in problems:
            lines += ["```", problem, "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _how(outcome: Outcome) -> str:
    scale = outcome.scale
    return (
        f"Seed {outcome.seed}, {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores: {scale.light_devices} light agents in {scale.light_processes} processes and "
        f"{scale.real_phones} agents with virtual phones behind a real adb server; "
        f"{outcome.calls - outcome.rollouts:,} calls of RunTask and "
        f"{outcome.rollouts} rollouts in {outcome.tries:,} tries, {outcome.verdict.repeated:,} answered again; "
        f"{outcome.load_s:.0f} s of load and faults, everything ended {outcome.heal_s:.0f} s after the last one was "
        f"mended; {outcome.events:,} events, {outcome.verdict.effects:,} effects felt. Faults: {outcome.faults}."
    )


def _table(outcome: Outcome, plain: Sequence[PlainOutcome]) -> list[str]:
    verdict = outcome.verdict
    lines = [
        "| | executions | lost | executed twice | counted twice | unknown, with cause | out of time | other |",
        "|---|---|---|---|---|---|---|---|",
    ]
    other = sum(verdict.count(sin) for sin in (Sin.DENIED, Sin.UNASKED, Sin.UNEXPLAINED))
    unknown = sum(doubt.code in DOUBT for doubt in verdict.doubts)
    lines.append(
        f"| Droidfleet | {verdict.executions:,} | {verdict.count(Sin.LOST)} | {verdict.count(Sin.TWICE)} "
        f"| {verdict.count(Sin.COUNTED_TWICE)} | {unknown} | {len(verdict.doubts) - unknown} | {other} |"
    )
    lines += [
        f"| {each.title} | {each.executions:,} | {each.lost} | {each.twice} ({each.twice_percent:.1f} %) "
        f"| {each.counted_twice} | | | |"
        for each in plain
    ]
    lines += ["", *(f"- {each.title}: {each.kills}." for each in plain)]
    return lines


def _doubts(outcome: Outcome) -> list[str]:
    doubts = outcome.verdict.doubts
    codes = Counter(doubt.code for doubt in doubts)
    lines = [
        ", ".join(f"{count} {code}" for code, count in sorted(codes.items())) + ". Each is failed, and not repeated.",
        "",
    ]
    lines += ["| execution | device | code | felt | cause |", "|---|---|---|---|---|"]
    lines += [
        f"| {doubt.execution_id} | {doubt.device} | {doubt.code} | {_felt(doubt)} | {doubt.cause} |"
        for doubt in doubts[:SHOWN_DOUBTS]
    ]
    if len(doubts) > SHOWN_DOUBTS:
        lines += ["", f"... and {len(doubts) - SHOWN_DOUBTS} more."]
    return lines


def _felt(doubt: Doubt) -> str:
    return ", ".join(doubt.felt) or "nothing"
