"""Schedules: rollouts that begin by themselves.

    cron -> zone (gap, fold) -> occurrences -> timer -> service: one occurrence, one rollout

Everything but `timer` and `service` is pure.
"""
