"""The `seamark` command: an installation that cannot even be imported is told in a line, and never with exit 1."""

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from harness.cli import main as command_line  # noqa: PLC0415  What this raises is to be caught.
    except Exception as error:  # noqa: BLE001  A package is missing or broken, whichever.
        print(f"seamark: cannot be loaded ({error!r}): make setup installs what it needs", file=sys.stderr)  # noqa: T201  Its only word.
        sys.exit(4)
    command_line.main()
