"""This installation: its version, and whether Python finds its packages."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PACKAGES_OF_OURS = ("seamark", "harness", "nemesis", "checkers", "clusters")


def shadowed_package() -> str | None:
    """A line that names another package which shadows one of ours; None if there is none.

    Our names are common words.
    """
    root = Path(__file__).resolve().parents[2]
    for package in PACKAGES_OF_OURS:
        spec = find_spec(package)
        where = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if where is None or where.parent != root / package:
            culprit = where or "nothing"
            return (
                f"the package {package!r} is taken by {culprit}: run seamark from another folder, or unset PYTHONPATH"
            )
    return None


def entry_points(group: str) -> "tuple[EntryPoint, ...]":
    """What all installed packages declare for that group, by name."""
    from importlib import metadata  # noqa: PLC0415  A history from elsewhere needs no cluster.

    return tuple(sorted(metadata.entry_points(group=group), key=lambda point: point.name))


def version() -> str:
    """The version of this distribution."""
    from importlib.metadata import distribution  # noqa: PLC0415  Few commands print a version.

    return distribution("seamark").version
