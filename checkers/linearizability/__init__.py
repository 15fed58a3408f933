"""Whether each register of a history is linearizable. Begin at check.py."""
