"""From a history directory to findings: what they say, and that they are the same however the work is cut."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.history.names import Dictionary, Names
from checkers.history.streams import read_deliveries, read_writes, stream_logs
from checkers.streams.catalogue import RULES
from checkers.streams.check import check
from harness.core.columns import KINDS, NEVER
from harness.core.errors import HistoryError
from harness.core.record import Complete, Invoke, MicroOp, Outcome, Record, StreamEvent
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.streams.cases import contract

MS = 1_000_000
Appends = list[tuple[str, int]]


def operation(index: int, appends: Appends, outcome: Outcome, position: int | None) -> Iterator[Record]:
    """One transaction of appends to named keys, from its invocation to its completion."""
    mops = tuple(MicroOp("append", key, value) for key, value in appends)
    yield Invoke(index, index * MS, index * MS, index, "txn", None, mops)
    yield Complete(index, index * MS + 1, outcome, None, mops, commit_ts=position)


class Subscriber:
    """Writes stream events in the order in which it is told."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._number = 0

    def __call__(self, ms: int, kind: str, **what: object) -> StreamEvent:
        self._number += 1
        return StreamEvent(100 * MS + ms * MS, self._name, 1, self._number - 1, kind, **what)  # type: ignore[arg-type]  # The fields of an event, by name.

    def row(self, ms: int, key: str, value: int, position: int, ordinal: int = 0) -> StreamEvent:
        return self(ms, "row", key=key, value=value, position=position, ordinal=ordinal)


def history(folder: Path) -> Path:
    """Three operations, and two subscribers: s1 is served well, s2 misses, is late, is torn and goes back."""
    s1, s2 = Subscriber("s1"), Subscriber("s2")
    records: list[Record] = [
        *operation(0, [("x", 1)], "ok", 1),
        *operation(1, [("x", 2), ("y", 3)], "info", None),
        *operation(2, [("y", 4)], "ok", 3),
        *operation(3, [("z", 5)], "fail", None),
        s1(0, "open", position=0),
        s2(0, "open", position=0),
        s1.row(1, "x", 1, 1),
        s1.row(2, "x", 2, 2, 0),
        s1.row(3, "y", 3, 2, 1),
        s1(4, "watermark", position=2),
        s1.row(5, "y", 4, 3),
        s1(6, "watermark", position=3),
        s2.row(1, "x", 2, 2, 0),
        s2(10, "watermark", position=2),
        s2.row(2410, "y", 3, 2, 1),
        s2(2500, "watermark", position=1),
        s2(2600, "watermark", position=3),
        s2.row(2600, "y", 4, 3),
    ]
    write_history(records, folder)
    return folder


def judged(folder: Path, **changes: object) -> Judgement:
    name = Names(Dictionary(folder).text)
    return check(folder, Context(engine=LocalEngine(2), contract=contract(**changes), name=name))


def test_each_finding_is_a_sentence_with_the_facts(tmp_path: Path) -> None:
    judgement = judged(history(tmp_path / "history"))
    assert [(finding.anomaly, finding.count, finding.sentence) for finding in judgement.findings] == [
        (
            "late-event-boundary",
            2,
            "Watermark 2 was announced to s2, but value 3 of key y at that very position, which it includes, "
            "first arrived 2.4 s later.",
        ),
        ("watermark-regress", 1, "Watermark 1 was announced to s2 2.5 s after watermark 2: it went back."),
        (
            "missing-event",
            1,
            "Watermark 2 was announced to s2, but value 1 of key x at position 1 (operation 0) never arrived.",
        ),
        (
            "torn-unit",
            1,
            "Watermark 2 was announced to s2 when value 2 of key x had arrived, but value 3 of key y of the same "
            "unit had not: "
            "it came 2.4 s later (operation 1).",
        ),
        (
            "split-view",
            1,
            "s1 (session 1) and s2 (session 1) completed position 1, but only s1 (session 1) received value 1 of "
            "key x there.",
        ),
    ]
    assert judgement.findings[3].ops == (1,)
    assert len(judgement.findings[3].events) == 3
    assert judgement.unknown == {}
    assert judgement.facts["subscribers"] == 2
    assert judgement.facts["unplaced-operations"] == 0


def test_a_late_event_is_told_with_its_position(tmp_path: Path) -> None:
    s1 = Subscriber("s1")
    write_history([s1(0, "open", position=0), s1(1, "watermark", position=5), s1.row(1, "x", 31, 3)], tmp_path / "late")
    (finding,) = judged(tmp_path / "late").findings
    assert finding.sentence == (
        "Watermark 5 was announced to s1, but value 31 of key x at position 3 first arrived "
        "after it, at the same instant."
    )


def test_the_end_of_a_batch_and_a_unit_without_source_are_told(tmp_path: Path) -> None:
    s1 = Subscriber("s1")
    rows = [s1(0, "open", position=0), s1(1, "row", key="x", value=1, position=4, ordinal=0, unit=7, unit_rows=2)]
    write_history([*rows, s1(2, "watermark", position=4)], tmp_path / "units")
    (finding,) = judged(tmp_path / "units").findings
    assert finding.sentence == (
        "Watermark 4 was announced to s1 when value 1 of key x had arrived, but not every row that unit 7 has."
    )
    assert finding.ops == ()
    source = [*operation(0, [("x", 1), ("y", 2)], "ok", 4)]
    write_history([*source, *rows, s1(2, "commit"), s1.row(3, "y", 2, 4, 1)], tmp_path / "batch")
    (finding,) = judged(tmp_path / "batch", atomic_unit="batch").findings
    assert finding.sentence.startswith(
        "A batch ended at s1 when value 1 of key x at position 4 had arrived, but value 2 of key y of the same"
    )


def test_fingerprints_depend_on_nothing_but_the_facts(tmp_path: Path) -> None:
    one, other = judged(history(tmp_path / "one")), judged(history(tmp_path / "other"))
    prints = [finding.fingerprint for finding in one.findings]
    assert prints == [finding.fingerprint for finding in other.findings]
    assert len(set(prints)) == len(prints)
    assert all(len(each) == 16 for each in prints)


def test_one_log_for_all_says_the_same_as_one_for_each(tmp_path: Path) -> None:
    folder = history(tmp_path / "history")
    assert len(stream_logs(folder, contract(wm_scope="subscriber"))) == 2
    assert len(stream_logs(folder, contract(wm_scope="global"))) == 1
    apart = judged(folder, wm_scope="subscriber")
    assert apart.witnesses["watermark-regress"] == 3
    one_by_one = judged(folder)
    assert [finding.anomaly for finding in apart.findings] == [finding.anomaly for finding in one_by_one.findings]


def test_an_operation_of_unclear_outcome_is_placed_by_either_subscriber(tmp_path: Path) -> None:
    folder = history(tmp_path / "history")
    writes = read_writes(folder)
    assert writes.op.tolist() == [0, 1, 1, 2, 3]
    assert writes.ordinal.tolist() == [0, 0, 1, 0, 0]
    assert writes.position.tolist() == [1, NEVER, NEVER, 3, NEVER]
    assert judged(folder).facts["unobserved-info-operations"] == 0


def test_events_come_as_columns_in_order_of_receipt(tmp_path: Path) -> None:
    folder = history(tmp_path / "history")
    deliveries = read_deliveries(stream_logs(folder, contract())[1])
    kinds = " ".join(KINDS[kind] for kind in deliveries.kind)
    assert kinds == "open row watermark row watermark watermark row"
    assert deliveries.position.tolist() == [0, 2, 2, 2, 1, 3, 3]
    assert deliveries.ordinal.tolist() == [NEVER, 0, NEVER, 1, NEVER, NEVER, 0]
    assert set(deliveries.subscriber.tolist()) == {1}
    assert set(deliveries.span.tolist()) == {-1}


def test_a_history_without_a_stream_has_no_witness(tmp_path: Path) -> None:
    write_history(operation(0, [("x", 1)], "ok", 1), tmp_path / "history")
    assert judged(tmp_path / "history").witnesses == dict.fromkeys(RULES, 0)


def test_rows_without_a_position_make_every_answer_unknown(tmp_path: Path) -> None:
    s1 = Subscriber("s1")
    write_history([s1(0, "open", position=0), s1(1, "row", key="x", value=1, ordinal=0)], tmp_path / "history")
    unknown = judged(tmp_path / "history").unknown
    assert set(unknown) == set(RULES)
    assert "came without position" in unknown["late-event"]


@pytest.mark.parametrize(("unplaced", "is_unknown"), [(1, False), (2, True)])
def test_too_many_writes_of_unknown_position_leave_missing_ones_unknown(
    tmp_path: Path, unplaced: int, is_unknown: bool
) -> None:
    source = [operation(n, [("x", n)], "ok", None if n < unplaced else n) for n in range(10)]
    s1 = Subscriber("s1")
    write_history([*(r for one in source for r in one), s1(0, "open", position=0)], tmp_path / "history")
    assert ("missing-event" in judged(tmp_path / "history").unknown) is is_unknown


@pytest.mark.parametrize("name", ["events.parquet", "ops.parquet", "mops.parquet"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    folder = history(tmp_path / "history")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(HistoryError, match="cannot be read"):
        judged(folder)


def test_where_subscribers_share_the_events_none_lacks_what_another_one_got(tmp_path: Path) -> None:
    s1, s2 = Subscriber("s1"), Subscriber("s2")
    records: list[Record] = [
        *operation(0, [("x", 1)], "ok", 1),
        *operation(1, [("x", 2)], "ok", 2),
        *operation(2, [("z", 5)], "fail", None),
        s1(0, "open", position=0),
        s2(0, "open", position=0),
        s1.row(1, "x", 1, 1),
        s2.row(2, "x", 2, 2),
        s2.row(3, "z", 5, 3),
    ]
    write_history(records, tmp_path)
    each, group = (judged(tmp_path, tail="settled", consumers=consumers) for consumers in ("each", "group"))
    assert [finding.anomaly for finding in each.findings] == ["missing-event", "phantom-event", "lost-tail"]
    assert [finding.anomaly for finding in group.findings] == ["phantom-event"]
    assert (each.witnesses["lost-tail"], group.witnesses["lost-tail"]) == (2, 0)
