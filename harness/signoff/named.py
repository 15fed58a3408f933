"""Sweeps by their names: that of the sweep, or the release that it tested, in place of a folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.campaign.document import SWEEP_FILE, SWEEPS, Sweep, read_sweep
from harness.core.errors import HistoryError, ScenarioError
from harness.record.store import LATEST
from harness.scenario.sut import release

SHOWN: Final = 8  # The most names in a message.


def sweep_named(name: Path, store: Path) -> Path:
    """The folder that a command line names: a path, or a name of sweeps in the store, of which the latest counts.

    A name is `latest`, that of a sweep, its release in words, or a part of it, such as its version. Only sweeps that
    have ended count. Raises ScenarioError, with the names that there are, if there is none.
    """
    if name.exists():
        return name
    ended = sorted(_ended(store), key=lambda each: each[0].name)
    found = [folder for folder, sweep in ended if str(name) in _names(sweep)]
    if not found:
        raise ScenarioError(
            f"{name}: there is no such folder, and no sweep of {store} that has ended is called so{_known(ended)}"
        )
    return found[-1]


def _ended(store: Path) -> Iterator[tuple[Path, Sweep]]:
    for path in (store / SWEEPS).glob(f"*/*/{SWEEP_FILE}"):
        try:
            yield path.parent, read_sweep(path)
        except HistoryError:  # A damaged one has no name.
            continue


def _names(sweep: Sweep) -> set[str]:
    return {LATEST, sweep.name, release(sweep.sut), *sweep.sut.values()}


def _known(ended: list[tuple[Path, Sweep]]) -> str:
    """The names of these sweeps, for a message."""
    names = dict.fromkeys(each for _, sweep in reversed(ended) for each in (release(sweep.sut), sweep.name) if each)
    return f"; it has {', '.join(list(names)[:SHOWN])}" if names else ""
