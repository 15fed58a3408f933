"""Logs that split and merge: their keys, the order of events over them, and the order of units in them."""
