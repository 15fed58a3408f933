"""What a sweep's folder proves: its document, derived from its order and its rows.

sweep.json is a summary for readers. Nothing is decided by it: where it differs from what the rows say, one of the two
was changed, and the folder is refused.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from harness.campaign.document import SWEEP_FILE, SWEEPS, Sweep, read_sweep
from harness.campaign.ledger.design import Order
from harness.campaign.ledger.orders import ORDER_FILE, Kind, digest_of, read_order
from harness.campaign.ledger.rows import ROWS_FILE, Kept, Row, read_rows
from harness.campaign.ledger.soundness import require_planned
from harness.campaign.outcome import sweep_of
from harness.core.command import seamark
from harness.core.errors import HistoryError, ScenarioError

KIND: Final = Kind("sweep", SWEEPS, "seamark sweep nightly.toml")
WORDS: Final = frozenset(  # Fields for readers, which another version may write differently, and those of other sweeps.
    {"reason", "rule", "stopped", "text", "source", "sentence", "command", "path", "folder", "first_run"}
    | {"first_seen", "last_seen", "is_new"}
)


SHOWN_MAX: Final = 60  # The most characters shown of a value.


class Evidence(NamedTuple):
    """A sweep that has ended: its document, as its order and its rows make it."""

    folder: Path
    order: Order
    kept: Kept[Row]
    sweep: Sweep


def evidence_at(path: Path) -> Evidence:
    """The evidence of the sweep that a command line names by its folder or its sweep.json.

    Raises ScenarioError that says how to name one, or to bring it to its end; HistoryError that names the file, the
    line and the field if it is damaged, or if its documents contradict each other.
    """
    folder = _named(path)
    order, kept = kept_in(folder)
    stored = require_counted(folder, kept)
    sweep = sweep_of(order, kept, folder=folder)
    is_short = sweep.runs < sweep.planned and order.design.time_budget is None
    if stored is None or stored.rows_sha256 != sweep.rows_sha256 or is_short:
        raise ScenarioError(f"{folder}: this sweep has not ended: {seamark('sweep', '--resume', folder)}")
    for place, one, other in differing(msgspec.to_builtins(stored), msgspec.to_builtins(sweep), WORDS):
        what = f"{place} is {one}, and by its rows {other}"
        raise HistoryError(f"{folder / SWEEP_FILE}: {what}: one of the two was changed; restore both from a copy")
    return Evidence(folder, order, kept, sweep)


def kept_in(folder: Path) -> tuple[Order, Kept[Row]]:
    """The order and the rows in a sweep's folder, whether it has ended or not. Raises HistoryError as above."""
    order = read_order(folder, KIND, Order)
    kept = read_rows(folder, Row, digest_of(order))
    require_planned(folder, order.design, kept.rows)
    return order, kept


def require_counted(folder: Path, kept: Kept[Row]) -> Sweep | None:
    """The sweep.json of a folder; None if there is none yet.

    Raises HistoryError if it counts rows that are not there: their end was cut off.
    """
    if not (folder / SWEEP_FILE).exists():
        return None
    stored = read_sweep(folder)
    if stored.rows_sha256 not in kept.chain:
        raise HistoryError(
            f"{folder / ROWS_FILE}: lacks rows that {SWEEP_FILE} counts, or {SWEEP_FILE} is that of another sweep: "
            "restore both from a copy"
        )
    return stored


def _named(path: Path) -> Path:
    if not path.exists():
        raise ScenarioError(f"{path}: there is no such sweep; its folder is STORE/sweeps/NAME/UTC-SEED")
    folder = path if path.is_dir() else path.parent
    if not (folder / ORDER_FILE).exists() or not (folder / ROWS_FILE).exists():
        lacking = ORDER_FILE if (folder / ROWS_FILE).exists() else ROWS_FILE
        raise ScenarioError(f"{folder}: is no sweep's folder (no {lacking} in it): copy the whole folder")
    return folder


def differing(
    stored: object, derived: object, words: frozenset[str], place: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Where a document differs from what it should be: the field, and what it is in both. Fields in `words` may."""
    if isinstance(stored, Mapping) and isinstance(derived, Mapping):
        for name in sorted((stored.keys() | derived.keys()) - words):
            yield from differing(stored.get(name), derived.get(name), words, f"{place}.{name}".lstrip("."))
    elif isinstance(stored, list | tuple) and isinstance(derived, list | tuple) and len(stored) == len(derived):
        for number, (one, other) in enumerate(zip(stored, derived, strict=True)):
            yield from differing(one, other, words, f"{place}[{number}]")
    elif stored != derived:
        yield place, _short(stored), _short(derived)


def _short(value: object) -> str:
    text = f"a list of {len(value)}" if isinstance(value, list | tuple) else msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
