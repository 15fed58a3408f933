"""Generators: immutable values that choose the next operation to invoke."""
