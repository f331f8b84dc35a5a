"""Devices: who holds which name, whether an agent is heard, what its phone is doing.

`names` and `device` decide and are pure; `registry` keeps all devices in memory and writes them to the database.
"""
