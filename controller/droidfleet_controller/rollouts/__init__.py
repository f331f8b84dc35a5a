"""Rollouts: one task over many phones, in waves.

    spec (what was asked) -> preflight (what it will do) -> planner (what to do now, and why; pure) -> service (does it)

`planner` decides and is pure; `service` is the only writer of a running rollout; `commands` are what people ask of one.
"""
