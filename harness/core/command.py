"""Commands that Seamark suggests, quoted so that pasting one into a shell runs exactly that command."""

import shlex


def seamark(*words: object) -> str:
    """The command line `seamark WORDS`, with each argument quoted for a shell."""
    return shlex.join(("seamark", *map(str, words)))
