"""Runs one validated task against one phone: look, decide, act, verify (protocol section 3).

    run (the task: values, seed, deadline) -> flow (which step is next, and what a failure does)
        -> outcome (`after`, an unknown outcome, `redo`) -> steps/<action> (one executor an action)
            -> target, conditions, wait (look until it is there) -> step.look (one snapshot)
            -> step.act (the only place that tells the phone to do something)

Everything the engine knows of the world comes through the `Phone`, the `Clock` and the observer; it opens no file or
connection. What leaves it has passed `redact`.
"""
