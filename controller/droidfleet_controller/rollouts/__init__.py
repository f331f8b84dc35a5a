"""Rollouts: one task over many phones, in waves.

    documents, check (what was asked) -> preflight (what it would do) -> starting (it is there)
        -> following (what happens to it; one writer) <-> planner (what to do, and why; pure) -> writing (it is done)

`service` is the door: the use cases of the API and the schedules. `reading` shows a rollout as it stands.
"""
