"""`python -m oracle [CASES] [FIRST]`: compares the planner with the oracle in so many cases, on all processors."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from oracle.cases import Case, MismatchError

DEFAULT_CASES = 1_000_000
CHUNK = 1_000


def run(first: int) -> str:
    """Runs a chunk of cases; the story of the first that fails, empty for none."""
    for number in range(first, first + CHUNK):
        try:
            Case(number).run()
        except MismatchError as mismatch:
            return str(mismatch)
    return ""


def main() -> int:
    """0: the planner and the oracle agree."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_CASES
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    began = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for done, story in enumerate(pool.map(run, range(first, first + cases, CHUNK)), 1):
            if story:
                print(story)
                pool.shutdown(cancel_futures=True)
                return 1
            if done % 10 == 0 or done * CHUNK >= cases:
                print(f"{done * CHUNK} cases agree, {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
