"""Histories from their files: transactions, streams, faults, and what else a run recorded."""
