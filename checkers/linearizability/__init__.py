"""Linearizability of each register of a history. Begin with check.py."""
