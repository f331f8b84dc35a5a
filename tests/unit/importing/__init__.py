"""Imports of other programs' files."""
