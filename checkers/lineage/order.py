"""The order of a key's events over logs that follow one another: `order-inversion`.

A reader of a key reads a log to its end before the logs that follow it. First deliveries are judged, for each
subscriber, or for all together if they are a group. An event of a log is an inversion if, for its reader,
1. an event of the same key comes for the first time from a log before it, later than this one; or
2. a parent that has the key (by its hash) ends later. A gap that no event of the parent follows counts as its end, as
   truncated events cannot come any more.
A reader that begins with a log, and later with one before it in another session, has gone back by intention: the events
from there invert nothing. Nor does an event below the position of an earlier gap of its log: the gap covers it, and
another member of the group may still find it. A parent without an end claims nothing. A witness is an event whose key
had events in a log before, or whose parent's end is known.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from checkers.history.troubles import Trouble
from checkers.lineage.logs import Lineage, Log, Row
from checkers.words.anomalies import SHARED

INVERSION: Final = "order-inversion"
ANOMALIES: Final = {INVERSION: SHARED[INVERSION]}


class Begun(NamedTuple):
    """Where a reader met a log first: journal position and session."""

    seq: int
    session: tuple[str, int]


def judge(found: Lineage, *, is_group: bool) -> tuple[int, list[Trouble]]:
    """The witnesses and the violations."""
    readers: dict[str, list[Row]] = {}
    for row in found.events:
        if row["span"] is not None and row["kind"] in ("open", "row", "gap", "end"):
            readers.setdefault("" if is_group else row["subscriber"], []).append(row)
    count, troubles = 0, []
    for events in readers.values():
        reader = _Reader(found, events)
        troubles += list(reader.inversions())
        count += reader.witnesses
    return count, troubles


class _Reader:
    """The deliveries to one reader, or to a group."""

    def __init__(self, found: Lineage, events: Sequence[Row]) -> None:
        self._found = found
        self._begun: dict[str, Begun] = {}
        self._ends: dict[str, int] = {}
        self.witnesses = 0
        last: dict[str, int] = {}
        gaps: dict[str, int] = {}
        covered: dict[str, int] = {}  # By log: the highest position of a gap.
        first: dict[tuple[str, int, int], Row] = {}
        for row in events:
            span, seq = row["span"], row["seq"]
            self._begun.setdefault(span, Begun(seq, (row["subscriber"], row["session"])))
            match row["kind"]:
                case "row" if row["position"] is not None and row["position"] < covered.get(span, row["position"]):
                    pass
                case "row":
                    last[span] = seq
                    first.setdefault((span, row["position"], row["key"]), row)
                case "end":
                    self._ends.setdefault(span, seq)
                case "gap":
                    gaps[span] = seq
                    if row["position"] is not None:
                        covered[span] = max(row["position"], covered.get(span, row["position"]))
        for span, seq in gaps.items():
            if seq > last.get(span, -1):
                self._ends[span] = min(seq, self._ends.get(span, seq))
        self._rows = list(first.values())

    def inversions(self) -> Iterator[Trouble]:
        seen: dict[int, dict[str, Row]] = {}  # By key: the first event of each log.
        for row in self._rows:
            logs = seen.setdefault(row["key"], {})
            later = [each for log, each in logs.items() if self._found.comes_before(row["span"], log)]
            if later and self._is_meant(row["span"], later[0]):
                yield self._inverted(later[0], row)
            ended = self._ended(row) if row["span"] not in logs else []
            follows = any(self._found.comes_before(log, row["span"]) for log in logs)
            self.witnesses += follows or bool(later or ended)
            logs.setdefault(row["span"], row)
            yield from self._early(row, ended)

    def _is_meant(self, parent: str, row: Row) -> bool:
        """True if the reader of that event was to read the log `parent` before it."""
        begun = self._begun[parent]
        return begun.seq < row["seq"] or begun.session == (row["subscriber"], row["session"])

    def _inverted(self, one: Row, other: Row) -> Trouble:
        key = self._found.key(one["key"])
        sentence = (
            f"{one['subscriber']} delivered an event of key {key} from log {one['span']}, and later "
            f"{other['subscriber']} one from log {other['span']}, which comes before it."
        )
        return Trouble(INVERSION, sentence, (str(key), one["span"], other["span"]), events=(one["seq"], other["seq"]))

    def _ended(self, row: Row) -> list[Log]:
        """The parents of the event's log that have its key, and an end."""
        log = self._found.logs.get(row["span"])
        return [parent for parent in self._holders(log, row["key"]) if parent.name in self._ends] if log else []

    def _early(self, row: Row, ended: Sequence[Log]) -> Iterator[Trouble]:
        """2, of the first event of a key in a log."""
        for parent in ended:
            end = self._ends[parent.name]
            if end > row["seq"] and self._is_meant(parent.name, row):
                key = self._found.key(row["key"])
                sentence = (
                    f"{row['subscriber']} delivered an event of key {key} from log {row['span']} before the end of log "
                    f"{parent.name}, which it follows."
                )
                yield Trouble(INVERSION, sentence, (str(key), parent.name), events=(row["seq"], end))

    def _holders(self, log: Log, key: int) -> list[Log]:
        """The parents that have the key; all if its hash is not known and the log has one parent."""
        place = self._found.hashes.get(key)
        parents = [self._found.logs[name] for name in log.parents if name in self._found.logs]
        if place is None:
            return parents if len(log.parents) == 1 else []
        return [each for each in parents if any(low <= place < high for low, high in each.ranges)]
