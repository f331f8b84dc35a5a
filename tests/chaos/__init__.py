"""The history checker: a load on the real stack while parts of it are killed, paused and cut off; then a reckoning.

``plan`` (what goes wrong when, from a seed) -> ``world`` (stack, load, faults, healing) -> ``checker`` (what the API
accepted, what the phones felt, what the controller reports) -> ``report``. The phones' effect logs are the truth:
they are written with each effect and outlive every process. ``plain_queue`` is what the figures are compared with.
"""
