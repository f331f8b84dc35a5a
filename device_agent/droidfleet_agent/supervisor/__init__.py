"""One agent for each attached phone of this host, in processes of their own.

Owns the processes: starts them, restarts what crashed with back-off, ends them in order. Decisions are pure (`plan`).
Commands go to a process on its standard input, news come back on its standard output, a line of JSON each; the end of
its input, as when this process dies, ends it. Never touches a phone or the bus.
"""
