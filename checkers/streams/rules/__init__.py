"""The rules of a change stream, by subject."""
