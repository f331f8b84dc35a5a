"""What the agent and the controller both speak.

Owns: task protocol v1 (`protocol`), the bus (`bus`: subjects, messages, the supervised connection), the error
tree, the clock and deadline types, settings and logging. Never: phones, databases, gRPC, or anything that only one
side needs.
"""
