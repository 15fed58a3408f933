"""Linearizability of each register of a history. Begin at check.py."""
