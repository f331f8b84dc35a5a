"""The demo: a controller, its broker, an adb server and five virtual phones with agents, and one real task on all five.

Owns only the telling of that story: every part is the real program, started as a user would start it. ``story`` tells
it; ``fleet`` starts the parts (as children of ``processes``); ``checks`` compares what the phones felt with what was
reported.
"""
