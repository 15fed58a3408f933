"""Histories read from their files: transactions, streams, faults, and other records of a run."""
