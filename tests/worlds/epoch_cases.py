"""Histories with epochs in a small language, written record by record.

Of a transaction "ax1" appends 1 to x, "rx12" reads x as [1, 2] without lock, "Rx12" under one; "rx?" has no result.
Keys are letters and stand as their codes; an epoch is GCI << BITS | micro, written (7, 3).
"""

from pathlib import Path

from checkers.engine.datasets import LocalEngine
from harness.core.promises import Bounds
from harness.core.record import Complete, Evidence, Invoke, Json, MicroOp, Outcome, State, StreamEvent
from harness.record.formats.parquet.parquet import write_history

BITS = 32
ENGINE = LocalEngine(1)
BOUNDS = Bounds(saved_bits=BITS)
Epoch = tuple[int, int]


def epoch(parts: Epoch) -> int:
    return parts[0] << BITS | parts[1]


class Story:
    """Records in the order in which they are told."""

    def __init__(self) -> None:
        self.records: list[Evidence] = []
        self._asked: list[tuple[MicroOp, ...]] = []

    def begin(self, text: str) -> int:
        """Invoke a transaction; returns its index."""
        asked = tuple(_mop(word, is_invoked=True) for word in text.split())
        self._asked.append(asked)
        index = len(self._asked) - 1
        self._tell(Invoke(index, self._now, self._now, index, "txn", None, asked))
        return index

    def end(
        self, index: int, text: str | None, at: Epoch | None, outcome: Outcome = "ok", commit: Epoch | None = None
    ) -> None:
        """Answer it, with that epoch; it wrote if it appended, or as `commit` says."""
        done = None if text is None else tuple(_mop(word, is_invoked=False) for word in text.split())
        is_writer = any(mop.f == "append" for mop in self._asked[index]) and outcome == "ok"
        number = None if at is None else epoch(at)
        committed = epoch(commit) if commit is not None else number if is_writer else None
        txn = 100 + index if outcome == "ok" else None
        self._tell(Complete(index, self._now, outcome, mops=done, txn=txn, epoch=number, commit_ts=committed))

    def op(self, text: str, at: Epoch | None, outcome: Outcome = "ok") -> int:
        """A transaction from its invocation to its answer."""
        index = self.begin(text)
        self.end(index, text if outcome == "ok" else None, at, outcome)
        return index

    def restart(self, restored: int, first: Epoch, number: int = 1) -> None:
        """The whole cluster begins to serve again."""
        self._tell(State(self._now, "d1", "restart", number, [restored, epoch(first)]))

    def view(self, number: int, at: Epoch, node: str = "d1") -> None:
        """A node installs a view."""
        self._tell(State(self._now, node, "view", number, ["d1", "d2"], epoch(at)))

    def told(
        self, kind: str, at: Epoch | None = None, *, unit: int | None = None, who: str = "s1", session: int = 1
    ) -> int:
        """An event of a subscriber; a row is of x. Returns its position in the journal."""
        position = None if at is None else epoch(at)
        key, value = (ord("x"), 1) if kind == "row" else (None, None)
        self._tell(StreamEvent(self._now, who, session, 0, kind, None, key, value, position, None, position, unit))
        return len(self.records) - 1

    def marks(self, *positions: Epoch, who: str = "s1", session: int = 1) -> None:
        """Watermarks, one after the other."""
        for position in positions:
            self.told("watermark", position, who=who, session=session)

    def write(self, folder: Path) -> Path:
        """The history's folder."""
        write_history(self.records, folder / "history")
        return folder / "history"

    @property
    def _now(self) -> int:
        return len(self.records)

    def _tell(self, record: Evidence) -> None:
        self.records.append(record)


def _mop(word: str, *, is_invoked: bool) -> MicroOp:
    key = ord(word[1])
    if word[0] == "a":
        return MicroOp("append", key, int(word[2:]))
    seen: Json = None if is_invoked or word[2:] == "?" else [int(digit) for digit in word[2:]]
    return MicroOp("r", key, seen, None, "shared" if word[0] == "R" else None)


def name(identity: int) -> str:
    """Keys as the letters that they are, elements as numbers."""
    return chr(identity) if identity >= ord("a") else str(identity)
