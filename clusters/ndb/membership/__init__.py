"""Membership: heartbeats, views, arbitration, start, and the copy of rows to a node that joins."""
