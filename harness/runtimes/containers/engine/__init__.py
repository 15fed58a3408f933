"""The Docker engine: how to reach it, what our containers may do, their labels, and what is left behind."""
