"""Whole runs: one, many, repeated, stopped early; each from its scenario to its report."""
