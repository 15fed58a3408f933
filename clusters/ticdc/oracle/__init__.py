"""The timestamp oracle."""
