"""A sink: collections published to a topic elsewhere exactly once, and a reader of that topic."""
