"""A search for runs that reach states that no run before them reached, and that break a promise in a new manner."""
