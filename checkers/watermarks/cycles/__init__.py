"""Cycles through watermarks: their steps, paths and classes, and the forbidden classes."""
