"""Consistency models of transactions on lists and registers. Begin at check.py."""
