"""A virtual phone's state and what changes it: apps, pages, variables, layout, windows, touch, keys. Never any I/O."""
