"""Transactions: coordinators, two-phase commit, snapshots, and the resolving of locks."""
