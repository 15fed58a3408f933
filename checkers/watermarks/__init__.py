"""Watermarks as consistent cuts: readers in the dependency graph. Begin with check.py."""
