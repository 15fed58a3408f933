"""The parameters of a sweep or a hunt, stored in its folder, so that a later call can continue it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from harness.core.errors import HistoryError, ScenarioError
from harness.record.documents import read_plain
from harness.record.store import LATEST, write_atomically
from harness.run.running import versions

OrderT = TypeVar("OrderT", bound=msgspec.Struct)

ORDER_FILE: Final = "order.json"


class Kind(NamedTuple):
    """A kind of campaign: its noun, the folder of a store with all of them, and the command for a first one."""

    noun: str
    place: str
    first: str


def write_order(folder: Path, order: msgspec.Struct) -> None:
    """Write the parameters into the folder. Raises OSError if the disk is full."""
    write_atomically(folder / ORDER_FILE, msgspec.json.format(msgspec.json.encode(order), indent=1) + b"\n")


def read_order(path: Path, store: Path, kind: Kind, form: type[OrderT]) -> tuple[Path, OrderT]:
    """The folder `path`, or the latest of the store, and its parameters.

    Raises ScenarioError if there is none, HistoryError if it is damaged.
    """
    folder = _latest(store, kind) if str(path) == LATEST else path
    if not (folder / ORDER_FILE).is_file():
        raise ScenarioError(
            f"{folder}: not a {kind.noun}'s folder (no {ORDER_FILE} in it); {kind.noun}s are in {store / kind.place}"
        )
    try:
        return folder, msgspec.json.decode(read_plain(folder / ORDER_FILE), type=form)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HistoryError(f"{folder / ORDER_FILE}: not the order of a {kind.noun} ({error})") from None


def require_same_versions(folder: Path, began_with: Mapping[str, str], kind: Kind) -> None:
    """Raise ScenarioError unless Seamark, Python and the platform are the same as at the beginning."""
    if dict(versions()) != began_with:
        was = ", ".join(f"{name} {version}" for name, version in began_with.items())
        raise ScenarioError(f"{folder}: was begun with {was}: go on with the same, or begin a new {kind.noun}")


def _latest(store: Path, kind: Kind) -> Path:
    found = [path.parent for path in (store / kind.place).glob(f"*/*/{ORDER_FILE}")]
    if not found:
        raise ScenarioError(f"{LATEST}: {store} holds no {kind.noun} yet: {kind.first}")
    return max(found, key=lambda each: (each.name.partition("-")[0], each.name))
