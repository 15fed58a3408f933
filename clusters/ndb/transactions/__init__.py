"""Transactions: coordinators and their take-over, storages, locks and rows."""
