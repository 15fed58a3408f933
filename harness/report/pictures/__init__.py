"""Drawings as shapes: plots on one axis of time, timelines, cycles, staircases and space-time diagrams."""
