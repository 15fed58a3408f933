"""The child process in which one thing goes wrong."""

from pathlib import Path

BROKEN_CHILD = str(Path(__file__).with_name("broken_child.py"))
