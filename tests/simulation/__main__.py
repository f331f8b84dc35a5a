"""Simulates worlds: ``python -m simulation --seeds 2000``. One world alone prints its history.

Python's hashing of texts is fixed (``PYTHONHASHSEED=0``; the program sees to it), so that a seed is the same history in
every process.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from simulation.many import verdicts
from simulation.world import Verdict, live_through

HASH_SEED = "PYTHONHASHSEED"

SHOWN = 3
"""Failing seeds whose histories are printed; the others are named."""

GIVE_UP = 20
"""Failing seeds after which the rest is left: something is wrong everywhere."""

PROGRESS_S = 10.0


def main() -> int:
    """Runs the command; 1 when an invariant did not hold."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2_000, help="how many worlds (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (%(default)s)")
    parser.add_argument("--digests", action="store_true", help="print a line for each seed: its number and digest")
    parser.add_argument("--log", action="store_true", help="for one seed: with what the product logs")
    arguments = parser.parse_args()
    if os.environ.get(HASH_SEED) != "0":
        os.execve(sys.executable, [sys.executable, "-m", "simulation", *sys.argv[1:]], {**os.environ, HASH_SEED: "0"})
    if arguments.seeds == 1:
        return _replay(arguments.first, verbose=arguments.log)
    return _simulate(arguments.first, arguments.seeds, jobs=arguments.jobs, digests=arguments.digests)


def _replay(seed: int, *, verbose: bool) -> int:
    verdict = live_through(seed, verbose=verbose)
    print("\n".join(verdict.lines))
    _tell(f"seed {seed}: {len(verdict.findings)} findings, digest {verdict.digest}")
    return 1 if verdict.findings else 0


def _simulate(first: int, count: int, *, jobs: int, digests: bool) -> int:
    started = told = time.monotonic()
    failed: list[Verdict] = []
    virtual_s = 0.0
    with verdicts(range(first, first + count), jobs) as found:
        for done, verdict in enumerate(found, 1):
            virtual_s += verdict.seconds
            if digests:
                print(verdict.seed, verdict.digest)
            if verdict.findings:
                failed.append(verdict)
                _tell_failure(verdict, shown=len(failed) <= SHOWN)
            if len(failed) == GIVE_UP:
                break
            if time.monotonic() - told >= PROGRESS_S:
                told = time.monotonic()
                _tell(f"{done} of {count} worlds, {len(failed)} failed, {told - started:.0f} s")
    taken_s = time.monotonic() - started
    _tell(f"{count} worlds of {virtual_s / 3600:.1f} hours in {taken_s:.0f} s: {len(failed)} failed")
    return 1 if failed else 0


def _tell_failure(verdict: Verdict, *, shown: bool) -> None:
    if shown:
        _tell(f"\n--- the history of seed {verdict.seed}:")
        _tell("\n".join(verdict.lines))
    _tell(f"seed {verdict.seed} FAILED: {verdict.findings[0]}")
    _tell(f"  again, alone: make simulate SEEDS=1 FIRST={verdict.seed}")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
