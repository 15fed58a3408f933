"""Commands that we suggest: whoever copies one into a shell runs just that, whatever its words hold."""

import shlex


def seamark(*words: object) -> str:
    """The command line `seamark WORDS`, each word quoted for a shell."""
    return shlex.join(("seamark", *map(str, words)))
