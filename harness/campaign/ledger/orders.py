"""The order of a sweep or a hunt, stored in its folder, so that a later call can continue it."""

import os
import secrets
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from harness.core.errors import HistoryError, ScenarioError
from harness.record.documents import decoded, read_plain
from harness.record.store import LATEST, write_atomically
from harness.run.code import code_digest
from harness.run.running import versions
from harness.scenario.consent import Code

ORDER_FILE: Final = "order.json"
ORDER_SCHEMA: Final = 2

OrderT = TypeVar("OrderT", bound="CampaignOrder")


class CampaignOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What every order has: an `id`, which no other campaign has, and the hash of all `code` that decides."""

    schema: int = ORDER_SCHEMA
    id: str
    code: str
    versions: dict[str, str]
    started_utc: str


class Kind(NamedTuple):
    """A kind of campaign: its noun, the folder of a store with all of them, and the command for a first one."""

    noun: str
    place: str
    first: str


def new_id() -> str:
    """The id of a new campaign."""
    return secrets.token_hex(8)


def digest_of(order: msgspec.Struct) -> str:
    """The hash of an order: where the chain of its rows begins."""
    return sha256(msgspec.json.encode(order, order="sorted")).hexdigest()


def write_order(folder: Path, order: msgspec.Struct) -> None:
    """Write the order into the folder. Raises OSError if the disk is full."""
    write_atomically(folder / ORDER_FILE, msgspec.json.format(msgspec.json.encode(order), indent=1) + b"\n")


def read_order(folder: Path, kind: Kind, form: type[OrderT]) -> OrderT:
    """The order in a campaign's folder. Raises HistoryError that names the field if it is damaged."""
    path = folder / ORDER_FILE
    try:
        order = decoded(read_plain(path), form)
    except ValueError as error:
        raise HistoryError(f"{path}: not the order of a {kind.noun} of this Seamark ({error})") from None
    if order.schema != ORDER_SCHEMA:
        raise HistoryError(
            f"{path}: has schema {order.schema}, this Seamark reads {ORDER_SCHEMA}: make a new {kind.noun}"
        )
    return order


def folder_of(path: Path, store: Path, kind: Kind) -> Path:
    """The folder of the campaign at `path`, or of the store's latest. Raises ScenarioError if there is none."""
    folder = _latest(store, kind) if str(path) == LATEST else path
    if not os.path.lexists(folder / ORDER_FILE):
        raise ScenarioError(
            f"{folder}: not a {kind.noun}'s folder (no {ORDER_FILE} in it); {kind.noun}s are in {store / kind.place}"
        )
    return folder


def store_of(folder: Path, kind: Kind) -> Path:
    """The store that a campaign's folder is in, STORE/PLACE/NAME/FOLDER; as seen from here if it is below.

    Raises ScenarioError if it is in none: a copy elsewhere has no place for runs.
    """
    whole = folder.resolve()
    if len(whole.parents) < 3 or whole.parents[1].name != kind.place:
        raise ScenarioError(f"{folder}: is in no store: a {kind.noun} goes on in STORE/{kind.place}/NAME/FOLDER")
    store, here = whole.parents[2], Path.cwd()
    return store.relative_to(here) if store.is_relative_to(here) and not folder.is_absolute() else store


def require_same(folder: Path, order: CampaignOrder, codes: Iterable[Code], kind: Kind) -> None:
    """Raise ScenarioError unless Seamark, Python, the platform and all code that decides are those of the beginning."""
    if dict(versions()) != order.versions:
        raise ScenarioError(
            f"{folder}: was begun with {_named(order.versions)}: go on with the same, or begin a new one"
        )
    if code_digest(codes) != order.code:
        raise ScenarioError(
            f"{folder}: the code of its clusters or of Seamark has changed since: begin a new {kind.noun}"
        )


def _named(began_with: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in began_with.items())


def _latest(store: Path, kind: Kind) -> Path:
    found = [path.parent for path in (store / kind.place).glob(f"*/*/{ORDER_FILE}")]
    if not found:
        raise ScenarioError(f"{LATEST}: {store} holds no {kind.noun} yet: {kind.first}")
    return max(found, key=lambda each: (each.name.partition("-")[0], each.name))
