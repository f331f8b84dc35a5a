"""Deterministic simulation: the real controller and real agents on a virtual clock, drawn and driven by one number.

    seed -> scenario -> world (broker, disk, controller, hosts with agents, phones) -> faults and commands -> checks

Real: registry, publisher, ingest, sweeper, runs, cancels, rollouts, and the agents with their workers and engine.
Doubled: the event loop's time, the broker, the disk under SQLite, and the phones. ``python -m simulation --help`` runs
it.
"""
