"""The logs of a stream as its events declare them: parents, and the keys that each log has.

An event of kind `successors` declares a log: `span` is its name, and `value` has its `parents`, names of logs, and its
`ranges`, pairs [low, high) of hashes below 2^63. An event of kind `hash` gives the hash of a key as its value. All logs
that follow one log are declared together: another event of that session ends the declaration.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct, field

from checkers.history.names import Dictionary
from checkers.history.tables import rows
from harness.core.errors import HistoryError
from harness.core.record import Json

SPACE: Final = 1 << 63
KINDS: Final = ("open", "row", "gap", "end", "successors", "hash")
COLUMNS: Final = ("seq", "subscriber", "session", "kind", "span", "key", "value", "position", "unit")
Range = tuple[int, int]
Session = tuple[str, int]
Row = Mapping[str, Any]


class Declared(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of an event of kind `successors`. `ranges` is empty if the log's keys are unknown."""

    parents: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()


class Log(NamedTuple):
    """A log: `seq` is the place of its first declaration. `is_closed`: all that was declared with it is known."""

    name: str
    parents: tuple[str, ...]
    ranges: tuple[Range, ...]
    seq: int
    is_closed: bool


class Changed(NamedTuple):
    """A second declaration of a log that differs from the first."""

    name: str
    first: int
    seq: int


class Lineage(Struct, frozen=True, kw_only=True):
    """All events about logs, in order, the declared logs by name, and the hashes of keys by their ids.

    `enders` and `declarers` have the sessions that came to the end of a log, and declared a successor of it.
    """

    events: Sequence[Row]
    logs: Mapping[str, Log]
    changed: Sequence[Changed]
    hashes: Mapping[int, int]
    names: Dictionary
    enders: Mapping[str, set[Session]]
    declarers: Mapping[str, set[Session]]
    _known: dict[tuple[str, str], bool] = field(default_factory=dict)

    def children(self) -> dict[str, list[Log]]:
        """The declared logs by each of their parents."""
        found: dict[str, list[Log]] = {}
        for log in self.logs.values():
            for parent in log.parents:
                found.setdefault(parent, []).append(log)
        return found

    def comes_before(self, one: str, other: str) -> bool:
        """True if the log `one` is an ancestor of the log `other`."""
        known = self._known.get((one, other))
        if known is None:
            seen, left = {other}, [other]
            while left:
                log = self.logs.get(left.pop())
                new = [parent for parent in (log.parents if log else ()) if parent not in seen]
                seen.update(new)
                left += new
            known = self._known[one, other] = one != other and one in seen
        return known

    def key(self, identity: int) -> str:
        """A key as sentences show it."""
        return self.names.text(identity)


def lineage(history: Path) -> Lineage:
    """The logs of that history. Raises HistoryError for a declaration that cannot be read."""
    events = rows(history, "events", COLUMNS, kind=KINDS)
    names = Dictionary(history)
    logs: dict[str, Log] = {}
    changed: list[Changed] = []
    enders: dict[str, set[Session]] = {}
    declarers: dict[str, set[Session]] = {}
    for row in events:
        if row["kind"] in ("end", "gap") and row["span"] is not None:
            enders.setdefault(row["span"], set()).add((row["subscriber"], row["session"]))
    for row, is_closed in _declarations(events):
        name = str(row["span"])
        declared = _declared(history, row, names.value(row["value"]))
        for parent in declared.parents if is_closed else ():
            declarers.setdefault(parent, set()).add((row["subscriber"], row["session"]))
        log = logs.setdefault(name, Log(name, declared.parents, declared.ranges, row["seq"], is_closed))
        if (log.parents, log.ranges) != (declared.parents, declared.ranges):
            changed.append(Changed(name, log.seq, row["seq"]))
        elif is_closed and not log.is_closed:
            logs[name] = log._replace(is_closed=True)
    hashes = {row["key"]: _hash(history, row, names.value(row["value"])) for row in events if row["kind"] == "hash"}
    return Lineage(
        events=events, logs=logs, changed=changed, hashes=hashes, names=names, enders=enders, declarers=declarers
    )


def _declarations(events: Sequence[Row]) -> Iterator[tuple[Row, bool]]:
    """Each declaration, and if another event of its session follows the declarations that come with it."""
    last: dict[tuple[str, int], int] = {}
    for row in events:
        if row["kind"] not in ("successors", "hash"):
            last[row["subscriber"], row["session"]] = row["seq"]
    for row in events:
        if row["kind"] == "successors":
            yield row, last.get((row["subscriber"], row["session"]), -1) > row["seq"]


def _declared(history: Path, row: Row, value: Json) -> Declared:
    try:
        declared = msgspec.convert(value, Declared)
    except msgspec.ValidationError as error:
        problem = str(error)
    else:
        bad = next((each for each in declared.ranges if not 0 <= each[0] < each[1] <= SPACE), None)
        if bad is None and row["span"] is not None:
            return declared
        problem = "it names no log" if bad is None else f"[{bad[0]}, {bad[1]}) is no range of hashes below 2^63"
    raise HistoryError(
        f"{history}: the event of kind successors at journal position {row['seq']} cannot be read ({problem}); its "
        'span is a log, and its value is like {"parents": ["a"], "ranges": [[0, 4611686018427387904]]}'
    )


def _hash(history: Path, row: Row, value: Json) -> int:
    if type(value) is not int or not 0 <= value < SPACE:
        raise HistoryError(
            f"{history}: the event of kind hash at journal position {row['seq']} has the value {str(value)[:40]}; it "
            "must be the hash of its key, an integer from 0 up to 2^63"
        )
    return value


def without(ranges: Sequence[Range], taken: Sequence[Range]) -> list[Range]:
    """The parts of `ranges` that none of `taken` has."""
    left = sorted(ranges)
    for low, high in taken:
        left = [
            part
            for begin, end in left
            for part in ((begin, min(end, low)), (max(begin, high), end))
            if part[0] < part[1]
        ]
    return left


def common(one: Sequence[Range], other: Sequence[Range]) -> list[Range]:
    """The parts that both have."""
    parts = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return [part for part in parts if part[0] < part[1]]
