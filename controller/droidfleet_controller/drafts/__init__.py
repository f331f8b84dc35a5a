"""Drafts: explorations that run here, what they log, and what a person does with a draft.

Implements the designer's ports over the fleet, the database and the files; `exploring` runs it.
"""
