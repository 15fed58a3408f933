"""The readers of a group, and the state that they share."""
