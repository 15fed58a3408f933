"""Leaders and their timestamps: guarantees G8, G9, G12, G15, G16 and G21.

1. `epoch-overlap`: every timestamp of an epoch is at least the highest of the epochs before, and its writes are
   above. A witness is an epoch that follows another one.
2. `superseded-answer`: a strict read was answered by an epoch that was still the last one when the read was invoked. A
   witness is a strict read.
3. `ahead-of-clock`: a write's timestamp is ahead of the time of its answer by no more than a window for each leader
   that has begun, as each begins at the bound of the one before; and by no more time than clocks were wrong, as
   timestamps then rise at twice the speed. A witness is a write.
4. `two-tables`: no transaction writes two tables. A witness is a transaction that would.
5. `beyond-bound`: a write's timestamp is below a bound that was durable before its answer. A witness is a write.
6. `shared-epoch`: all answers of an epoch come from one coordinator. A witness is an epoch with answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary
from checkers.history.tables import Sample, rows, samples
from checkers.history.troubles import Trouble, judgement
from clusters.materialize.coordinator.reign import WINDOW
from clusters.materialize.shape import MS, UNIT_NS, table_of
from harness.core.columns import APPEND, OK
from harness.core.verdict import Judgement

CHECKER: Final = "leaders"
OVERLAP, SUPERSEDED, AHEAD, TABLES = "epoch-overlap", "superseded-answer", "ahead-of-clock", "two-tables"
BEYOND, SHARED = "beyond-bound", "shared-epoch"
ANOMALIES: Final = {
    OVERLAP: "A leader gave a timestamp below one of an earlier leader.",
    SUPERSEDED: "A leader answered a read that was invoked after it had been superseded.",
    AHEAD: "Timestamps ran ahead of the clock.",
    TABLES: "A transaction wrote two tables.",
    BEYOND: "A write has a timestamp that no durable bound covered.",
    SHARED: "Two coordinators answered in one epoch.",
}
STRICT: Final = ("txn", "change", "query", "read-source")
SLACK_NS: Final = 100 * MS
Row = Mapping[str, Any]


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all answers. Raises HistoryError if the history is damaged."""
    columns = ["index", "f", "outcome", "epoch", "node", "invoke_ns", "complete_ns", "read_ts", "commit_ts"]
    answered = [op for op in rows(history, "ops", columns, outcome=[OK]) if op["epoch"] is not None]
    ops = [op for op in answered if op["f"] in STRICT]
    probes = samples(history, "epoch", "bound")
    opened = {sample.value: sample.ns for sample in probes["epoch"]}
    wide = _wide(history)
    writes = [op for op in ops if op["commit_ts"] is not None]
    reads = [op for op in ops if op["read_ts"] is not None]
    wrong = [
        (fault["ns"], fault["phase"] == "begin")
        for fault in rows(history, "faults", ["ns", "phase"], phase=["begin", "end"], kind=["clock"])
    ]
    witnesses = {
        OVERLAP: max(0, len({op["epoch"] for op in ops}) - 1),
        SUPERSEDED: len(reads),
        AHEAD: len(writes),
        TABLES: len(wide),
        BEYOND: len(writes) if probes["bound"] else 0,
        SHARED: len({op["epoch"] for op in answered}),
    }
    troubles = [
        *_overlaps(ops),
        *_superseded(reads, opened),
        *_ahead(writes, wrong, sorted(opened.values())),
        *_two(wide),
        *(_beyond(writes, probes["bound"]) if probes["bound"] else ()),
        *_shared(answered),
    ]
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _overlaps(ops: Sequence[Row]) -> Iterator[Trouble]:
    """1."""
    highest: dict[int, tuple[int, Row]] = {}
    for op in ops:
        stamp = op["commit_ts"] if op["commit_ts"] is not None else op["read_ts"]
        if stamp is not None and stamp > highest.get(op["epoch"], (-1, op))[0]:
            highest[op["epoch"]] = (stamp, op)
    floors: dict[int, tuple[int, Row]] = {}
    best: tuple[int, Row] | None = None
    for epoch in sorted(highest):
        if best is not None:
            floors[epoch] = best
        best = max(highest[epoch], best or highest[epoch], key=lambda each: each[0])
    for op in ops:
        if op["epoch"] not in floors:
            continue
        floor, by = floors[op["epoch"]]
        is_low = op["read_ts"] is not None and op["read_ts"] < floor
        if is_low or (op["commit_ts"] is not None and op["commit_ts"] <= floor):
            stamp = op["read_ts"] if is_low else op["commit_ts"]
            one = f"T{op['index']} has timestamp {stamp} of epoch {op['epoch']}"
            sentence = f"{one}, although T{by['index']} has {floor} of epoch {by['epoch']}."
            yield Trouble(OVERLAP, sentence, (op["index"], by["index"]), (by["index"], op["index"]))


def _superseded(reads: Sequence[Row], opened: Mapping[int, int]) -> Iterator[Trouble]:
    """2."""
    for op in reads:
        later = [(ns, epoch) for epoch, ns in opened.items() if epoch > op["epoch"] and ns < op["invoke_ns"]]
        if later:
            ns, epoch = min(later)
            sentence = (
                f"T{op['index']} was answered by the leader of epoch {op['epoch']}, although epoch {epoch} had begun "
                f"{(op['invoke_ns'] - ns) / MS:.0f} ms before it was invoked."
            )
            yield Trouble(SUPERSEDED, sentence, (op["index"], op["epoch"]), (op["index"],))


def _ahead(writes: Sequence[Row], wrong: Sequence[tuple[int, bool]], opened_ns: Sequence[int]) -> Iterator[Trouble]:
    """3. `wrong` are the times at which clock faults began (True) or ended; `opened_ns` those of new leaders."""
    for op in writes:
        now_ns = op["complete_ns"]
        faulty_ns = sum((now_ns - ns) * (1 if is_begin else -1) for ns, is_begin in wrong if ns < now_ns)
        leaders = sum(ns < now_ns for ns in opened_ns)
        allowed_ns = SLACK_NS + leaders * WINDOW * UNIT_NS + faulty_ns
        ahead_ns = op["commit_ts"] * UNIT_NS - now_ns
        if ahead_ns > allowed_ns:
            sentence = (
                f"T{op['index']} wrote at {op['commit_ts']}, {ahead_ns // MS} ms ahead of the time of its answer, "
                f"where {allowed_ns // MS} ms are the most."
            )
            yield Trouble(AHEAD, sentence, (op["index"],), (op["index"],))


def _two(wide: Sequence[tuple[int, int]]) -> Iterator[Trouble]:
    """4."""
    for index, outcome in wide:
        if outcome == OK:
            sentence = f"T{index} appended to two tables, and was not refused."
            yield Trouble(TABLES, sentence, (index,), (index,))


def _beyond(writes: Sequence[Row], bounds: Sequence[Sample]) -> Iterator[Trouble]:
    """5."""
    highest, last = -1, 0
    for op in sorted(writes, key=lambda each: int(each["complete_ns"])):
        while last < len(bounds) and bounds[last].ns <= op["complete_ns"]:
            highest = max(highest, bounds[last].value)
            last += 1
        if op["commit_ts"] >= highest:
            sentence = f"T{op['index']} wrote at {op['commit_ts']}, when the highest durable bound was {highest}."
            yield Trouble(BEYOND, sentence, (op["index"],), (op["index"],))


def _shared(answered: Sequence[Row]) -> Iterator[Trouble]:
    """6."""
    first: dict[int, Row] = {}
    for op in answered:
        by = first.setdefault(op["epoch"], op)
        if op["node"] != by["node"]:
            sentence = (
                f"{op['node']} answered T{op['index']} in epoch {op['epoch']}, in which {by['node']} had answered "
                f"T{by['index']}."
            )
            yield Trouble(SHARED, sentence, (op["epoch"],), (by["index"], op["index"]))
            return


def _wide(history: Path) -> list[tuple[int, int]]:
    """The transactions that append to two tables, each with its outcome."""
    names, tables = Dictionary(history), dict[int, set[str]]()
    for mop in rows(history, "mops", ["op", "key"], f=[APPEND]):
        tables.setdefault(mop["op"], set()).add(table_of(names.value(mop["key"])))
    wide = {op for op, each in tables.items() if len(each) > 1}
    return [(op["index"], op["outcome"]) for op in rows(history, "ops", ["index", "outcome"]) if op["index"] in wide]


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
