"""`seamark completion`: the script with which a shell completes the command line."""

from enum import Enum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]  # Typer has no other name for it.

VARIABLE = "_SEAMARK_COMPLETE"  # The environment variable by which the script asks for completions.


class Shell(Enum):
    """The shells whose scripts exist."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell that reads the script.")]) -> int:
    """Print the script with which a shell completes commands and options."""
    typer.echo(get_completion_script(prog_name="seamark", complete_var=VARIABLE, shell=shell.value))
    return 0
