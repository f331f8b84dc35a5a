"""The journal: what the agent has taken on, what it is about to do, what happened, and what it still has to report.

Owns the port `Journal` and its implementations. Never decides what to run.
"""
