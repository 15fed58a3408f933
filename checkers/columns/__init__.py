"""Columns of numbers: runs of different lengths, indexes, blocks, and files of Arrow. They know no history."""
