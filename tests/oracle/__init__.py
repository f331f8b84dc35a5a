"""The rules of rollouts a second time: slow, in whole numbers, and so plain that they can be checked by reading.

`rules.Oracle` has no counters and no queues: it looks at every phone again after every single thing that happens.
`cases` makes random rollouts, fleets and happenings from a number, and compares the planner with it after each step.
`make oracle` runs a million; the test suite runs `tests/unit/rollouts/test_oracle.py`.
"""
