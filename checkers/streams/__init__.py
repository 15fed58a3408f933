"""Whether a change stream kept its contract. Begin at check.py."""
