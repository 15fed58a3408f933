"""Several primaries: the log, the exceptions and the last state of each site, and the declared rule for conflicts.

Four states, in each of which the key names the site; of several with one key the last counts.
- `site-log`: the transactions that the site committed, in its order: transactions of clients, and the changes that it
  applied. Each is {"transaction", "origin", "epoch", "rows", "reads"}: its name, the site where it was born, the local
  epoch in which the site committed it (it never falls; without epochs, the place in the log), [key, value] of each row
  that it changed here (null for a deleted row), and the keys that it read under tracking (may be left out). A
  transaction of which the site applied nothing stands there without rows, so that its place is known.
- `exceptions`: the table of rejected changes: [transaction, key, value]; the transaction or the value may be null.
- `site-state`: [key, value] of each row when all is at rest. A site with it has received all changes.
- `conflict-rule`: by which rule a site rejects a change from elsewhere. Its key is a row, or null for all others. See
  `Rule`. Without a rule no conflict is judged.

Operations that append count, too, if their `node` is a site.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec

from checkers.history.names import Dictionary
from checkers.history.tables import State, states
from harness.core.errors import HistoryError
from harness.core.record import Json

OBJECTS: Final = ("site-log", "exceptions", "site-state", "conflict-rule")
EPOCH_RULES: Final = frozenset({"epoch", "epoch2", "epoch-trans", "epoch2-trans"})
TRANSACTION_RULES: Final = frozenset({"epoch-trans", "epoch2-trans"})

_Kind = TypeVar("_Kind")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a change that arrives is in conflict with the row that is there.

    - `epoch`, `epoch2`: at the site `primary` alone: the row's last writer was a client of that site, and the change's
      transaction had not seen it when it committed. A site may take it as not seen until the end of its window of
      `rounding` epochs, and in the epoch in which it arrived. `epoch-trans`, `epoch2-trans`: a transaction with such a
      row is rejected as a whole, with all that depend on it.
    - `max`: the new value is not greater than that of the row; a deletion's old value differs from that of the row.
      `max-delete-win`: likewise, but a deletion is always applied. The value, or its first item, is compared.
    - `old`: the value that the change replaced at its origin is not that of the row.
    """

    rule: Literal["epoch", "epoch2", "epoch-trans", "epoch2-trans", "max", "max-delete-win", "old"]
    primary: str | None = None
    rounding: int = 1

    @property
    def problem(self) -> str:
        """Why the rule makes no sense; empty if it does."""
        is_whole = self.rounding >= 1 and (self.rule not in EPOCH_RULES or self.primary is not None)
        return "" if is_whole else "it needs a 'primary', and a 'rounding' from 1 on"

    def is_over(self, epoch: int, horizon: int) -> bool:
        """True if a site that had seen all epochs up to `horizon` has surely seen that epoch, and its window."""
        return (epoch // self.rounding + 1) * self.rounding - 1 <= horizon


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A transaction in a site's log."""

    transaction: Json
    origin: str
    epoch: int
    rows: tuple[tuple[Json, Json], ...] = ()
    reads: tuple[Json, ...] = ()


class Rejected(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A row of an exceptions table."""

    transaction: Json
    key: Json
    value: Json = None


class Sites(NamedTuple):
    """All of it, by site; rules by handle of the key, with None for all other keys."""

    logs: Mapping[str, tuple[Entry, ...]]
    exceptions: Mapping[str, tuple[Rejected, ...]]
    states: Mapping[str, Mapping[Json, Json]]
    rules: Mapping[Json, Rule]

    def rule(self, key: Json) -> Rule | None:
        """The rule for conflicts about that row."""
        return self.rules.get(key, self.rules.get(None))

    @property
    def rejected(self) -> set[tuple[str, Json, Json]]:
        """Site, transaction and key of each exception."""
        return {(site, handle(row.transaction), handle(row.key)) for site, of in self.exceptions.items() for row in of}


def handle(value: Json) -> Json:
    """The value as a key of a mapping: itself, or the text of a list or an object."""
    return str(value) if isinstance(value, list | dict) else value


def sites_of(history: Path) -> Sites:
    """Everything that the sites show. Raises HistoryError if a record has another form than the module's text has."""
    names = Dictionary(history)
    found = {kind: {handle(state.key): state for state in of} for kind, of in states(history, names, *OBJECTS).items()}
    logs = {str(site): _as(history, "site-log", state, tuple[Entry, ...]) for site, state in found["site-log"].items()}
    ends = {
        str(site): _as(history, "site-state", state, tuple[tuple[Json, Json], ...])
        for site, state in found["site-state"].items()
    }
    rules = {key: _as(history, "conflict-rule", state, Rule) for key, state in found["conflict-rule"].items()}
    for site, log in logs.items():
        _in_order(history, site, log)
    for key, rule in rules.items():
        if rule.problem:
            raise HistoryError(f"{history}: conflict-rule of {key}: {rule.problem}")
    return Sites(
        logs=logs,
        exceptions={
            str(site): _as(history, "exceptions", state, tuple[Rejected, ...])
            for site, state in found["exceptions"].items()
        },
        states={site: {handle(key): value for key, value in of} for site, of in ends.items()},
        rules=rules,
    )


def _as(history: Path, what: str, state: State, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.convert(state.value, kind)
    except msgspec.ValidationError as error:
        raise HistoryError(f"{history}: the {what} of {state.key} has another form: {error}") from None


def _in_order(history: Path, site: str, log: Iterable[Entry]) -> None:
    latest: Entry | None = None
    for entry in log:
        if latest is not None and entry.epoch < latest.epoch:
            raise HistoryError(
                f"{history}: site-log of {site}: {entry.transaction} in epoch {entry.epoch} stands behind "
                f"{latest.transaction} in epoch {latest.epoch}; list its transactions in the site's own order"
            )
        latest = entry
