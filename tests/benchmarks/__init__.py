"""Benchmarks: what a user would use instead, and the bare limit, measured beside ours in the same run.

Each module offers ``figures() -> list[Figure]`` (or a coroutine of it); `python -m benchmarks` runs them one after
the other, prints a table and writes ``build/bench.json``. Nothing here is a timed test: a machine that is slow today
breaks no build.
"""
