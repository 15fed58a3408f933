"""Consent to load code: only installed clusters, and files that the command line names, may be loaded.

A stored run, a scenario file or a history may come from anywhere, so a name in one of them is no consent, whatever else
the file says. The loader takes a `Code`, and only the functions of this file make one.
"""

import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.core.errors import ScenarioError, known
from harness.record.store import RunFile
from harness.scenario.installation import entry_points

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "seamark.clusters"


class Place(NamedTuple):
    """An object in a Python file, by name. An empty name means the file itself; its names are then listed."""

    path: Path
    name: str


class Code(NamedTuple):
    """The code of a cluster that may be loaded: `place` is its place in a file, None if it is installed.

    `name` is valid from every working directory: "ndb", or "/path/to/file.py:Name".
    """

    name: str
    place: Place | None


def cluster_names() -> tuple[str, ...]:
    """The names of all installed clusters, in order."""
    return tuple(point.name for point in entry_points(GROUP))


@cache
def entry_point(name: str) -> "EntryPoint":
    """The entry point of an installed cluster. It is looked up once: that reads a file of each installed package."""
    return next(point for point in entry_points(GROUP) if point.name == name)


def installed(name: str) -> Code:
    """The code of an installed cluster. Raises ScenarioError if no cluster has that name."""
    known(name, cluster_names(), "cluster", besides=", or name a file, as in path/to/file.py:Name")
    return Code(name, None)


def on_command_line(name: str) -> Code:
    """The code that our command line names, which is consent. Raises ScenarioError if there is no such name.

    A child process gets the name on its own command line, which its parent wrote.
    """
    place = place_of(name)
    if place is None:
        return installed(name)
    path = place.path.expanduser()
    return Code(f"{path.resolve()}:{place.name}", Place(path, place.name))


def consented(named: str, by: Path, given: str | None) -> Code:
    """The code of the cluster that the file `by` names, or `given`, the one on the command line, in its place.

    Raises ScenarioError if the file names code that the command line does not.
    """
    if given is not None:
        return on_command_line(given)
    if place_of(named) is not None:
        raise ScenarioError(
            f"{by}: its cluster is code in a file: if that may be run, add --cluster {shlex.quote(named)}"
        )
    return installed(named)


def code_in_file(run_file: RunFile) -> str | None:
    """The place of the cluster as a run states it, "/path/to/file.py:Name"; None if the cluster is not in a file."""
    named = run_file.options.get("cluster")
    return named if isinstance(named, str) and place_of(named) is not None else None


def place_of(name: str) -> Place | None:
    """The place in a file that the name of a cluster denotes; None if it denotes no file.

    The file system is not read.
    """
    path, _, attribute = name.rpartition(":")
    if path.endswith(".py"):
        return Place(Path(path), attribute)
    return Place(Path(name), "") if name.endswith(".py") else None
