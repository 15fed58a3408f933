"""Segment stores, and the containers that they run."""
