"""Runs as tests of a user's own suite: the plugin of pytest, and what a failure says."""
