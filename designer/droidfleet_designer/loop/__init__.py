"""One exploration, from a brief to its end: what a model says, carried out call by call, within limits.

Data passes so: the log's entries are folded into a `state`; `deciding` says from it what is next; `explore` does that
and writes what came of it as entries, before and after each effect. `history` makes of the same entries what the model
is told. So whoever has the log can go on where another process ended, at any entry.
"""
