"""The rules of a change stream, by what they look at."""
