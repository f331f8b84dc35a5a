"""Scenario files: the apps a virtual phone runs, as data. Models, loader, variants, and clear errors; never any behaviour."""
