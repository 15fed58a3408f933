"""Loads for servers that replicate from each other."""
