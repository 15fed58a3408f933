"""Debezium's change events: one message at a time, and lines of one form by columns."""
