"""Scenario files: the apps a virtual phone runs, as data. Models, loader, variants, clear errors; no behaviour."""
