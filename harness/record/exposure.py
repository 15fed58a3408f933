"""The exposure of a run, from its columns: completed operations, effects of each fault, results of the final phase."""

from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from checkers.columns.arrow import integers
from checkers.columns.runs import ordered
from harness.core.columns import FAIL, INFO, OK, Bools, Int64s
from harness.record.formats.parquet.tables import groups_of, read_table, row_count

OUTCOMES = {"ok": OK, "fail": FAIL, "info": INFO}
SECOND = 1_000_000_000
FOREVER = np.iinfo(np.int64).max


class Window(Struct, frozen=True, kw_only=True):
    """One step of the plan as carried out; `effect` is None if it was not measured."""

    step: int
    kind: str
    targets: str
    note: str | None
    begin_ns: int
    end_ns: int  # FOREVER if it was never healed.
    effect: int | None


class Operations(Struct, frozen=True, kw_only=True, dict=True):
    """Times and outcomes of operations: arrays of one length.

    `complete_ns` is FOREVER for an operation that never completed. `f` is an index into `types`: in a large history the
    texts themselves would take most of the memory.
    """

    types: tuple[str, ...]
    f: NDArray[np.int32]
    outcome: NDArray[np.int8]
    invoke_ns: Int64s
    complete_ns: Int64s

    def counts(self, chosen: Bools | None = None) -> dict[str, int]:
        """The numbers of operations that ended as ok, fail and info, among those `chosen`."""
        outcome = self.outcome if chosen is None else self.outcome[chosen]
        return {name: int(np.count_nonzero(outcome == code)) for name, code in OUTCOMES.items()}

    def ok_of_type(self, f: str) -> int:
        """The number of operations of that type that certainly happened."""
        return int(np.count_nonzero((self.f == self.types.index(f)) & (self.outcome == OK))) if f in self.types else 0

    def completed_in(self, window: Window) -> Int64s:
        """The rows of operations that completed while that fault was in force."""
        rows, ns, _ = self._by_completion
        first, last = (
            np.searchsorted(ns, window.begin_ns),
            np.searchsorted(ns, min(window.end_ns, FOREVER - 1), "right"),
        )
        return rows[first:last]

    def open_in(self, window: Window) -> int:
        """The number of operations that were open at some moment of that fault."""
        _, ns, invoke_ns = self._by_completion
        return int(np.count_nonzero(invoke_ns[np.searchsorted(ns, window.begin_ns) :] <= window.end_ns))

    @cached_property
    def _by_completion(self) -> tuple[Int64s, Int64s, Int64s]:
        """All rows in order of completion, and the times at which these completed and were invoked."""
        rows, complete_ns = ordered(self.complete_ns)
        return rows, complete_ns, self.invoke_ns[rows]


class Exposure(Struct, frozen=True, kw_only=True):
    """The facts of a run that its history records. `phases` holds the start of each phase, `note` how the run ended."""

    operations: Operations
    windows: tuple[Window, ...]
    phases: dict[str, int]
    note: str | None
    goals: dict[str, int]
    duration_ns: int
    last_position: int | None  # The highest position of an ok operation,
    watermarks: dict[str, int]  # The last watermark of each subscriber.
    watermark_gap_ns: int | None  # The longest time between two watermarks of a subscriber while the load lasts.

    def longest_recovery_ns(self) -> int | None:
        """The longest time from the end of a fault to the next success; None if no fault ended before a success."""
        successes = np.sort(self.operations.complete_ns[self.operations.outcome == OK])
        ends = np.array([each.end_ns for each in self.windows if each.effect and each.end_ns < FOREVER], np.int64)
        place = np.searchsorted(successes, ends)
        is_followed = place < len(successes)
        waits = successes[place[is_followed]] - ends[is_followed]
        return int(waits.max()) if waits.size else None


def read_exposure(history: Path) -> Exposure:
    """The exposure of the history in that folder. Raises HistoryError if its files cannot be read."""
    operations, last_position = _read_operations(history)
    marks = read_table(history, "marks").to_pylist()
    goals = msgspec.json.decode(marks[-1]["goals"], type=dict[str, int]) if marks else {}
    finite = operations.complete_ns[operations.complete_ns < FOREVER]
    phases, announced = phases_of(history), _watermarks(history)
    return Exposure(
        operations=operations,
        windows=fault_windows(history),
        phases=phases,
        note=next((mark["note"] for mark in marks if mark["phase"] == "end"), None),
        goals=goals,
        duration_ns=max([mark["ns"] for mark in marks] + [int(finite.max()) if finite.size else 0]),
        last_position=last_position,
        watermarks=dict(zip(announced["subscriber"].to_pylist(), announced["position"].to_pylist(), strict=True)),
        watermark_gap_ns=_longest_gap(announced, phases),
    )


def _read_operations(history: Path) -> tuple[Operations, int | None]:
    """The operations, and the highest position among them. Memory: the result and one row group."""
    count, codes, last = row_count(history, "ops"), dict[str, int](), list[int]()
    code, outcome = np.empty(count, np.int32), np.empty(count, np.int8)
    invoke_ns, complete_ns = np.empty(count, np.int64), np.empty(count, np.int64)
    begin = 0
    wanted = ["f", "outcome", "invoke_ns", "complete_ns", "commit_ts"]
    for ops in groups_of(history, "ops", wanted, coded=["f"]):
        rows = slice(begin, begin := begin + len(ops))
        f = ops["f"].combine_chunks()
        types = [codes.setdefault(name, len(codes)) for name in f.dictionary.to_pylist()]
        code[rows] = np.array(types, np.int32)[integers(f.indices)]
        outcome[rows], invoke_ns[rows] = integers(ops["outcome"]), integers(ops["invoke_ns"])
        complete_ns[rows] = integers(ops["complete_ns"], FOREVER)
        last += [highest] if (highest := pc.max(ops["commit_ts"]).as_py()) is not None else []
    operations = Operations(types=tuple(codes), f=code, outcome=outcome, invoke_ns=invoke_ns, complete_ns=complete_ns)
    return operations, max(last, default=None)


def phases_of(history: Path) -> dict[str, int]:
    """The start of each phase of the run, by name."""
    marks = read_table(history, "marks", ["ns", "phase"]).to_pylist()
    return {mark["phase"]: mark["ns"] for mark in marks if mark["phase"] != "tick"}


def fault_windows(history: Path) -> tuple[Window, ...]:
    """The faults that began, in plan order."""
    windows: dict[int, Window] = {}
    for row in read_table(history, "faults").sort_by("seq").to_pylist():
        step = row["step"]
        if row["phase"] == "begin":
            windows[step] = Window(
                step=step,
                kind=row["kind"],
                targets=", ".join(msgspec.json.decode(row["targets"], type=list[str])),
                note=None,
                begin_ns=row["ns"],
                end_ns=FOREVER,
                effect=None,
            )
        elif step in windows and row["phase"] == "effect":
            windows[step] = replace(windows[step], note=row["note"], effect=row["effect"])
        elif step in windows and row["phase"] == "end":
            windows[step] = replace(windows[step], end_ns=row["ns"])
    return tuple(windows[step] for step in sorted(windows))


def _watermarks(history: Path) -> pa.Table:
    """The watermarks with a position, in order of arrival."""
    events = read_table(history, "events", ["seq", "ns", "subscriber", "kind", "position"])
    is_mark = pc.and_(pc.equal(events["kind"], "watermark"), pc.is_valid(events["position"]))
    return events.filter(is_mark).sort_by("seq")


def _longest_gap(announced: pa.Table, phases: dict[str, int]) -> int | None:
    if "load" not in phases or "healing" not in phases:
        return None
    begin_ns, end_ns = phases["load"], phases["healing"]
    gaps = []
    for subscriber in pc.unique(announced["subscriber"]).to_pylist():
        ns = integers(announced.filter(pc.equal(announced["subscriber"], subscriber))["ns"])
        gaps.append(int(np.diff(np.concatenate(([begin_ns], ns[(ns > begin_ns) & (ns < end_ns)], [end_ns]))).max()))
    return max(gaps, default=None)
