"""The live session: what a person or a program asks of one phone right now. Looking needs no lease, acting does.

Owns the lease and the answers. Never decides how a step runs (the engine does) and never starts executions.
"""
