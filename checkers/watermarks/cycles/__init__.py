"""Cycles through watermarks: their steps, paths and classes, and which classes are forbidden."""
