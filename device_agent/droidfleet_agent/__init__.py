"""The agent: beside (or on) one phone, it runs protocol v1 tasks locally and reports structured results.

The flow: `link` (bus) -> `worker` (one execution at a time, `journal`) -> `engine` (steps) -> `screen` (what is seen,
pure) and `driver` (the phone). `supervisor` runs one agent for each attached phone; `virtual_phone` simulates one.
"""
