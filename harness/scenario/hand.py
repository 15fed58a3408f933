"""Commands for this machine, made of those that any machine understands."""

import shlex
from collections.abc import Iterable

from harness.scenario.consent import place_of


def at_hand(command: str, files: Iterable[str]) -> str:
    """A command of `command.command_of` for this machine, on which `files`, each FILE.py:NAME, hold the clusters."""
    named = {stand_in(file): file for file in files}
    words = shlex.split(command, comments=True)
    return shlex.join(named.get(word, word) for word in words) if named.keys() & set(words) else command


def stand_in(cluster: str) -> str:
    """A cluster as any machine has it: without the path of its file."""
    place = place_of(cluster)
    return cluster if place is None else f"YOUR_FILE.py:{place.name}".removesuffix(":")
