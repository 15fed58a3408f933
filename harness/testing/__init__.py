"""Runs as tests in a user's own test suite: the pytest plugin, and the messages of failures."""
