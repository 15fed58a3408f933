"""Resolved timestamps: what a region tracks, and the rounds in which a store advances it."""
