"""Mutants that no test can kill, and why: by file and change, as tests/mutants.py prints it."""

from typing import Final

ARGUED: Final[dict[tuple[str, str], str]] = {}
