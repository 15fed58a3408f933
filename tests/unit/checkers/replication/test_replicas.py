"""States of replicas against the logs of their sources: prefixes, positions and gaps."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import seamark
from checkers.engine.protocol import Context
from checkers.replication import positions, prefixes
from checkers.replication.prefixes import interval
from checkers.replication.sources import Unit, log_of
from harness.core.errors import HistoryError
from harness.core.record import Complete, Invoke, MicroOp, Record, State, StreamEvent
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.amount import count
from tests.oracles.replication import prefixes as replayed_prefixes
from tests.worlds.run_cases import ENGINE, anomalies

LOG: Any = [[10, "T1", [["x", 1], ["y", 2]]], [20, "T2", [["x", 3]]], [30, "T3", [["y", 4], ["z", 5]]]]
OTHER: Any = [[7, "U1", [["u", 1]]], [9, "U2", [["u", 2], ["v", 3]]]]
Shown = list[Any]


def told(folder: Path, *reads: Shown, ends: tuple[Shown, ...] = (), skipped: Any = ()) -> Path:
    """Reads of a replica, one after the other, each [positions, lists]; then what it has at the end."""
    records: list[Record] = []
    for index, value in enumerate(reads):
        records.append(Invoke(index, 10 * index, 10 * index, 0, "replica-read"))
        records.append(Complete(index, 10 * index + 5, "ok", value, node="r1"))
    records += [State(99, "m1", "source-log", "m1", LOG), State(99, "m2", "source-log", "m2", OTHER)]
    records += [State(99, "r1", "replica-state", "r1", value) for value in ends]
    records += [State(99, "r1", "skipped", "r1", [list(each) for each in skipped])]
    write_history(records, folder)
    return folder


def judge(check: Callable[[Path, Context], Judgement], folder: Path) -> Judgement:
    return check(folder, Context(engine=ENGINE))


def at(lists: Shown, *sources: tuple[str, int | None]) -> Shown:
    return [[list(each) for each in sources or (("m1", None),)], lists]


PREFIXES: dict[str, tuple[tuple[Shown, ...], list[str]]] = {
    "before everything": ((at([["x", []], ["y", []]]),), []),
    "after the first": ((at([["x", [1]], ["y", [2]]]),), []),
    "one key alone": ((at([["z", [5]]]),), []),
    "a key of no log": ((at([["x", [1]], ["elsewhere", [8]]]),), []),
    "a transaction in part": ((at([["x", [1]], ["y", []]]),), ["torn-transaction"]),
    "the third without the second": ((at([["x", [1]], ["z", [5]]]),), ["torn-prefix"]),
    "an element twice": ((at([["x", [1, 1]]]),), ["repeated-element"]),
    "an element left out": ((at([["x", [3]]]),), ["skipped-element"]),
    "an element that nobody wrote": ((at([["x", [1, 8]]]),), ["phantom-element"]),
    "later, more": ((at([["x", [1]]]), at([["x", [1, 3]]])), []),
    "later, less": ((at([["x", [1, 3]]]), at([["x", [1]]])), ["prefix-regress"]),
    "later, less under another key": ((at([["z", [5]]]), at([["x", [1]]])), ["prefix-regress"]),
    "two sources, each by itself": ((at([["x", [1]], ["y", [2]], ["u", []]], ("m1", None), ("m2", None)),), []),
    "a torn transaction of the second source": (
        (at([["x", [1]], ["u", [1, 2]], ["v", []]], ("m1", None), ("m2", None)),),
        ["torn-transaction"],
    ),
}


@pytest.mark.parametrize("case", PREFIXES)
def test_the_prefixes_of_a_log(tmp_path: Path, case: str) -> None:
    reads, expected = PREFIXES[case]
    assert anomalies(judge(prefixes.check, told(tmp_path, *reads))) == expected


def test_what_a_replica_shows_that_it_left_out_is_no_hole(tmp_path: Path) -> None:
    lists = [["x", [1]], ["y", [2, 4]], ["z", [5]]]
    folder = told(tmp_path, at(lists, ("m1", 30)), ends=(at(lists, ("m1", 30)),), skipped=[("m1", 20)])
    assert anomalies(judge(prefixes.check, folder)) == anomalies(judge(positions.check, folder)) == []
    assert judge(positions.check, folder).witnesses == {"false-position": 2, "left-out": 3, "never-left-out": 1}


POSITIONS: dict[str, tuple[Shown, Any, list[str]]] = {
    "at its position": (at([["x", [1]], ["y", [2]], ["z", []]], ("m1", 15)), (), []),
    "behind its position": (at([["x", [1]], ["y", [2]], ["z", []]], ("m1", 20)), (), ["false-position", "left-out"]),
    "ahead of its position": (at([["x", [1, 3]], ["y", [2]], ["z", []]], ("m1", 10)), (), ["false-position"]),
    "left out, and shown": (at([["x", [1]], ["y", [2]], ["z", []]], ("m1", 20)), [("m1", 20)], []),
    "shown as left out, and there": (
        at([["x", [1, 3]], ["y", [2]], ["z", []]], ("m1", 20)),
        [("m1", 20)],
        ["false-position", "never-left-out"],
    ),
    "a position that it does not know": (at([["x", [1]]], ("m1", None)), (), []),
}


@pytest.mark.parametrize("case", POSITIONS)
def test_positions_and_gaps(tmp_path: Path, case: str) -> None:
    end, skipped, expected = POSITIONS[case]
    assert anomalies(judge(positions.check, told(tmp_path, ends=(end,), skipped=skipped))) == expected


def test_a_state_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="has another form"):
        judge(prefixes.check, told(tmp_path, ["no positions"]))


def test_drawn_states_are_judged_as_replaying_each_prefix_judges_them() -> None:
    found = set()
    for seed in range(count(300)):
        draw = Random(seed)
        element = iter(range(99))
        units = [[(draw.choice("xyz"), next(element)) for _ in range(draw.randint(1, 3))] for _ in range(5)]
        shown: dict[Any, list[Any]] = {key: [] for key in "xyz"}
        for unit in units[: draw.randint(0, 5)]:
            for key, value in unit:
                if draw.random() > 0.05:
                    shown[key].append(value)
        if draw.random() < 0.3:
            shown[draw.choice("xyz")].append(draw.randint(0, 12))
        log = log_of("m1", [Unit(at, f"T{at}", tuple(unit)) for at, unit in enumerate(units)])
        ends = interval(log, tuple((key, tuple(elements)) for key, elements in shown.items()))
        is_explained = ends.unlike is None and not ends.is_empty
        expected = replayed_prefixes(units, shown)
        assert is_explained == bool(expected), (seed, units, shown)
        if is_explained:
            low, high = ends.low.units if ends.low else 0, ends.high.units if ends.high else len(units)
            assert list(range(low, high + 1)) == expected
        found.add(is_explained)
    assert found == {True, False}


CONTRACT = """
[stream]
closed = "<="
cut = "position"
position = "commit-timestamp"

[[promise]]
id = "STREAM"
text = "The stream has everything, once, in order."
source = "the manual"
forbids = ["missing-event", "phantom-event", "wrong-value", "duplicate-event", "late-event", "torn-unit"]

[[promise]]
id = "PREFIX"
text = "A replica shows the state after a prefix of the log."
source = "the manual"
forbids = ["torn-prefix", "torn-transaction", "prefix-regress"]
"""


def test_a_state_that_no_prefix_explains_is_found_where_all_stream_rules_are_silent(tmp_path: Path) -> None:
    """Two transactions commit and are streamed whole and in order; a replica shows the second without the first."""
    records: list[Record] = []
    for index, (key, value, position) in enumerate((("x", 1, 5), ("y", 2, 9))):
        mops = (MicroOp("append", key, value),)
        records.append(Invoke(index, 10 * index, 10 * index, index, "txn", None, mops))
        records.append(Complete(index, 10 * index + 5, "ok", None, mops, commit_ts=position))
    records.append(StreamEvent(30, "s1", 0, 0, "open", position=0))
    for number, (key, value, position) in enumerate((("x", 1, 5), ("y", 2, 9)), start=1):
        event = StreamEvent(
            30 + number, "s1", 0, number, "row", key=key, value=value, position=position, ordinal=0, unit=number
        )
        records.append(event)
    records.append(StreamEvent(40, "s1", 0, 3, "watermark", position=9))
    records.append(Invoke(2, 50, 50, 2, "replica-read"))
    records.append(Complete(2, 55, "ok", [[], [["x", []], ["y", [2]]]], node="r1"))
    write_history(records, tmp_path / "history")
    (tmp_path / "own.toml").write_text(CONTRACT, encoding="utf-8")
    report = seamark.check(tmp_path / "history", promises=tmp_path / "own.toml")
    assert [(each.anomaly, each.promise) for each in report.findings] == [("torn-prefix", "PREFIX")]
    assert report.findings[0].sentence == (
        "T2 on r1 shows transactions 1 and 2 of stream torn apart: it lacks 1 under x, of 1 at 5, and has 2 under y, "
        "of 2, which comes later, at 9."
    )


def test_the_documented_records_are_judged(tmp_path: Path) -> None:
    """The read of docs/history-format.md shows a part of the transaction in the log beside it."""
    text = (Path(__file__).parents[4] / "docs/history-format.md").read_text(encoding="utf-8")
    records = text.split("## Logs and replicas")[1].split("```jsonl\n")[1].split("```")[0]
    (tmp_path / "own.jsonl").write_text(records, encoding="utf-8")
    promise = '[[promise]]\nid = "P"\ntext = "t"\nsource = "s"\nforbids = ["torn-transaction", "open-unit"]\n'
    (tmp_path / "own.toml").write_text(promise, encoding="utf-8")
    report = seamark.check(tmp_path / "own.jsonl", promises=tmp_path / "own.toml")
    assert "torn-transaction" in {each.anomaly for each in report.findings}
    assert "open-unit" not in {each.anomaly for each in report.findings}
