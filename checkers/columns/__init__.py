"""Columns of numbers: runs of different lengths, indexes, blocks, and Arrow files. Independent of histories."""
