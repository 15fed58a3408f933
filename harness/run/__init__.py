"""Whole runs, from a scenario to a report: one, many, repeated, stopped early."""
