"""The data for a report's drawings of a whole run: columns of the history, as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.columns.runs import is_ascending
from harness.core.columns import NEVER, OK, Int8s, Int64s
from harness.record.exposure import Window, fault_windows, phases_of
from harness.record.formats.parquet.tables import read_table
from harness.record.store import RunFile
from harness.report.pictures.scale import STEPS_MAX_NS

VIEW: Final = "view"  # The kind of object under which nodes report a membership view.
WATERMARKS: Final = ("watermark", "checkpoint")
ROWS: Final = ("row", "backfill")


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """The watermarks of one subscriber (on one span), in order of time: arrays of one length."""

    ns: Int64s
    position: Int64s


@dataclass(frozen=True, kw_only=True)
class Series:
    """A whole run as arrays. Operations are ascending by `index`; one that never completed has `complete_ns` NEVER."""

    index: Int64s
    process: Int64s
    outcome: Int8s
    invoke_ns: Int64s
    complete_ns: Int64s
    commit_ns: Int64s  # The times at which operations that reported a position were acknowledged,
    commit_position: Int64s  # and the positions, ascending.
    event_seq: Int64s
    event_ns: Int64s
    event_subscriber: NDArray[np.int64]  # Indexes of `subscribers`.
    event_session: Int64s
    event_position: Int64s  # NEVER if the event has none.
    is_watermark: NDArray[np.bool_]
    is_row: NDArray[np.bool_]
    subscribers: tuple[str, ...]
    announced: Mapping[str, tuple[Announced, ...]]
    windows: tuple[Window, ...]
    phases: Mapping[str, int]
    views: tuple[tuple[int, str], ...]  # The first installation of each membership view, and the view's number.
    end_ns: int
    found_ns: int = 0  # When the last finding became visible.

    @cached_property
    def ended_ns(self) -> Int64s:
        """When each operation completed; when it began, if it never completed."""
        return np.where(self.complete_ns < NEVER, self.complete_ns, self.invoke_ns)

    @property
    def load_begin_ns(self) -> int:
        """The begin of the load, where drawings begin: containers take seconds to start."""
        return min(self.phases.get("load", 0), self.load_end_ns)

    @property
    def load_end_ns(self) -> int:
        """The end of the load: what follows is healing, and final reads of everything."""
        return min(self.phases.get("healing", self.end_ns), self.end_ns)

    @property
    def drawn_end_ns(self) -> int:
        """The end of the plots: that of the load, or a little after a finding later, unless final reads showed it."""
        later_ns = self.found_ns + (self.found_ns - self.load_begin_ns) // 20
        return max(self.load_begin_ns + 1, self.load_end_ns, min(later_ns, self.limit_ns(self.found_ns)))

    def limit_ns(self, ns: int) -> int:
        """The latest end of a drawing that shows this moment: final reads of everything would take most of it."""
        reads = self.invoke_ns[self.invoke_ns > self.load_end_ns]
        first_read_ns = int(reads.min()) if reads.size else self.end_ns
        return first_read_ns if self.load_end_ns < ns <= first_read_ns else self.load_end_ns

    def style_of(self, subscriber: str) -> int:
        """The number of a subscriber's line style, the same in every drawing and run of a system."""
        return sorted(self.subscribers).index(subscriber)

    @property
    def is_order(self) -> bool:
        """True if this history has no times, only an order."""
        return self.end_ns < STEPS_MAX_NS


def read_series(history: Path, run_file: RunFile | None) -> Series:
    """The arrays of a history. Raises HistoryError if its files cannot be read."""
    ops = read_table(history, "ops", ["index", "process", "outcome", "invoke_ns", "complete_ns", "commit_ts"])
    column = {name: ops[name] for name in ops.column_names}
    complete_ns = column["complete_ns"].fill_null(int(NEVER)).to_numpy()
    outcome = column["outcome"].to_numpy()
    invoke_ns = column["invoke_ns"].to_numpy()
    position = column["commit_ts"].fill_null(int(NEVER)).to_numpy()
    is_commit = (outcome == OK) & (position < NEVER) & (complete_ns < NEVER)
    by_position = np.argsort(position[is_commit], kind="stable")
    phases = phases_of(history)
    finite = complete_ns[complete_ns < NEVER]
    ends = [int(each.max()) for each in (invoke_ns, finite) if each.size] + list(phases.values())
    is_stream = run_file is not None and run_file.stream is not None
    events = _events(history, is_local=bool(is_commit.any()) and not is_stream)
    return Series(
        index=column["index"].to_numpy(),
        process=column["process"].to_numpy(),
        outcome=outcome,
        invoke_ns=invoke_ns,
        complete_ns=complete_ns,
        commit_ns=complete_ns[is_commit][by_position],
        commit_position=position[is_commit][by_position],
        windows=fault_windows(history),
        phases=phases,
        views=_views(history),
        end_ns=max([*ends, int(events["event_ns"].max()) if len(events["event_ns"]) else 0]),
        **events,
    )


def _views(history: Path) -> tuple[tuple[int, str], ...]:
    """The changes of membership that nodes reported; empty if the system has no membership."""
    states = read_table(history, "states", ["ns", "object", "key"])
    rows = states.filter(pc.equal(states["object"], VIEW)).sort_by("ns").to_pylist()
    first: dict[int, int] = {}
    for row in rows:
        first.setdefault(row["key"], row["ns"])
    return tuple((ns, f"view {key}") for key, ns in first.items())


def _events(history: Path, *, is_local: bool) -> dict[str, Any]:
    """The fields of `Series` about the stream.

    `is_local`: its positions are not comparable with those of operations.
    """
    table = read_table(history, "events", ["seq", "ns", "subscriber", "session", "kind", "span", "position"])
    if not is_ascending(table["seq"].to_numpy()):
        table = table.sort_by("seq")
    names, subscriber = _encoded(table["subscriber"])
    kinds, kind = _encoded(table["kind"])
    spans, span = _encoded(table["span"].fill_null(""))
    marks = [number for number, name in enumerate(kinds) if name in WATERMARKS]
    is_watermark = np.isin(kind, marks)
    is_row = np.isin(kind, [number for number, name in enumerate(kinds) if name in ROWS])
    ns, position = table["ns"].to_numpy(), table["position"].fill_null(int(NEVER)).to_numpy()
    announced = {}
    for number, name in enumerate(() if is_local else names):
        chosen = [
            (subscriber == number) & is_watermark & (position < NEVER) & (span == each) for each in range(len(spans))
        ]
        announced[name] = tuple(Announced(ns=ns[each], position=position[each]) for each in chosen if each.any())
    return {
        "event_seq": table["seq"].to_numpy(),
        "event_ns": ns,
        "event_subscriber": subscriber,
        "event_session": table["session"].to_numpy(),
        "event_position": position,
        "is_watermark": is_watermark,
        "is_row": is_row,
        "subscribers": tuple(names),
        "announced": announced,
    }


def _encoded(column: pa.ChunkedArray) -> tuple[list[str], Int64s]:
    """The distinct texts of a column, and for each row the index of its text."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def lag_ns(announced: tuple[Announced, ...], series: Series, edges: Int64s, *, is_closed: bool) -> Int64s:
    """The greatest lag of a subscriber in each interval between `edges`, up to the nanosecond before its end.

    The lag at a moment is the age of the oldest acknowledged write that lies above all positions announced until then.
    `is_closed`: a watermark includes the position that it names.
    """
    worst = np.zeros(len(edges) - 1, np.int64)
    for each in announced:
        since = _unannounced_since(each, series, is_closed=is_closed)
        before = np.maximum(each.ns - np.minimum(since[:-1], each.ns), 0)  # The lag is greatest just before these.
        is_inside = (each.ns > edges[0]) & (each.ns <= edges[-1])
        place = np.clip(np.searchsorted(edges, each.ns[is_inside], "left") - 1, 0, len(worst) - 1)
        np.maximum.at(worst, place, before[is_inside])
        in_force = since[np.searchsorted(each.ns, edges[1:], "left")]
        worst = np.maximum(worst, np.maximum(edges[1:] - np.minimum(in_force, edges[1:]), 0))
    return worst


def lag_at(announced: tuple[Announced, ...], series: Series, moments: Int64s, *, is_closed: bool) -> Int64s:
    """The lag of a subscriber at each of those moments, after the events of that moment; see `lag_ns`."""
    worst = np.zeros(len(moments), np.int64)
    for each in announced:
        since = _unannounced_since(each, series, is_closed=is_closed)
        in_force = since[np.searchsorted(each.ns, moments, "right")]
        worst = np.maximum(worst, moments - np.minimum(in_force, moments))
    return worst


def _unannounced_since(announced: Announced, series: Series, *, is_closed: bool) -> Int64s:
    """The time of the oldest acknowledged write not yet announced: before the first watermark, and after each one."""
    oldest = np.minimum.accumulate(series.commit_ns[::-1])[::-1] if len(series.commit_ns) else series.commit_ns
    oldest = np.append(oldest, NEVER)  # Above all positions nothing is missing.
    reached = np.maximum.accumulate(announced.position)
    above = np.searchsorted(series.commit_position, reached, "right" if is_closed else "left")
    result: Int64s = oldest[np.concatenate(([0], above))]
    return result
