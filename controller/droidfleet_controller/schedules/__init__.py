"""Schedules: rollouts that begin by themselves.

    cron -> zones (gap, fold) -> moments, windows -> occurrences -> policy -> runner: one occurrence, one rollout
                                        check, preview -> service: the use cases          timer wakes the runner

Everything but `runner`, `secrets`, `service` and `timer` is pure.
"""
