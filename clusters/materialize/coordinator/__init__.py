"""Coordinators: one leads; it gives timestamps, commits groups of writes, and answers reads."""
