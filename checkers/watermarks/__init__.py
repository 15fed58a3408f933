"""Watermarks as consistent cuts: readers in the dependency graph. Begin at check.py."""
