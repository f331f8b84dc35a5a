"""Executions from their creation to their end: states, desired-state documents, ingest, deadlines, watching.

Deciding modules (`states`, `progress`, `window`, `deadlines`) are pure; `runs`, `ingest`, `publisher`, `sweeper` are
the thin effects around them. Never talks gRPC, never looks at a phone.
"""
