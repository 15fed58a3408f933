"""Resolved timestamps: the locks that a region tracks, and the messages of the rounds that advance it."""
