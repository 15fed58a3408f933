"""Contract of a change stream: its rules and findings. Begin at check.py."""
