"""The table of commands. A module is loaded when its command is named: together they would take half a second."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final

# Where each command's function is in this package, and its line in --help, in that order.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "run": ("run:run", "Run a cluster under faults and judge what happened."),
        "sweep": ("campaigns.sweep:sweep", "Carry out a matrix of runs, and judge it as a whole."),
        "calibrate": ("campaigns.calibrate:calibrate", "Measure how often, and by what, planted bugs are found."),
        "check": ("histories.check:check", "Judge what was recorded, without running any of its code."),
        "export": ("histories.export:export", "Write a history in another format."),
        "replay": ("failures.replay:replay", "Repeat a simulated run, compare every record, and judge it."),
        "shrink": ("failures.shrink:shrink", "Make a failing run as small as it gets."),
        "hunt": ("failures.hunt:hunt", "Search for a finding that no run had before."),
        "list": ("listing:list_runs", "List the runs in the store, the latest first."),
        "signoff": ("pages.signoff:signoff", "Decide on a release by two sweeps."),
        "serve": ("pages.serve:serve", "Show the store in a browser, until Ctrl-C."),
        "clusters": ("clusters:clusters", "List the clusters, each in a line."),
        "new": ("new:new", "Write a file that puts a server under test."),
        "completion": ("texts.completion:completion", "Print the script with which a shell completes commands."),
        "doctor": ("doctor:doctor", "Check what is present on this machine."),
        "images": ("images:images", "Build the images for containers."),
        "clean": ("clean:clean", "Remove what runs that died left behind."),
    }
)


def command_named(arguments: Sequence[str]) -> str | None:
    """The command that the arguments name; no option before it takes a value. None if they name none."""
    return next((each for each in arguments if each in COMMANDS), None)


def function_of(command: str) -> Callable[..., int]:
    """The function of that command, whose module is loaded."""
    module, _, name = COMMANDS[command][0].partition(":")
    function: Callable[..., int] = getattr(import_module(f"harness.cli.{module}"), name)
    return function
