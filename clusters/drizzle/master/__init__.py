"""Sessions of a master: statements, the messages that they become, and commits."""
