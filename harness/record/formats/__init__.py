"""Formats of histories: `load.py` knows all of them, and converts each to a history."""
