"""A simulated Android phone: apps from scenario files, real dumps and selectors, pictures, a log of effects.

`VirtualPhone` (phone.py) is the model: synchronous, deterministic, no I/O. The `wire` package speaks adb over TCP in
front of it. Nothing here drives a real phone, and nothing outside the tests and the demo needs it to do its work.
"""
