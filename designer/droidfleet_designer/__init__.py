"""From one sentence to a task that was seen to work.

A model explores one free phone through tools, writes a protocol v1 task, and has every selector of it checked against
the screens that it saw. What comes out is a draft for a person. It proposes: nothing here stores a task, schedules one
or runs one, and nothing here knows a database, a bus or the API. Those come in by ports: `ports` (the phone, the fleet,
the log, whoever approves) and `model.port` (the language model).

There so far: `conversation` (what is said), `model` (the port, and the reading of tool calls), `loop` (turn by turn,
resumable), `tools` (what may be done), `observation` (what a screen says), the values of `draft` and of the `log`. Not
yet: who answers, and the check of a draft against its evidence.
"""
