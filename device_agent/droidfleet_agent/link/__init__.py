"""What one agent says and hears on the bus: its desired state, its heartbeats, its events.

Owns the agent's side of the subjects. Never decides what to run: that is the worker's.
"""
