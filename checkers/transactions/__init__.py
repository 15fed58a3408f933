"""Whether transactions on lists and registers keep a consistency model. Begin at check.py."""
