"""The state of a virtual phone and what changes it: apps, pages, variables, layout, windows, touch and keys. Never any I/O."""
