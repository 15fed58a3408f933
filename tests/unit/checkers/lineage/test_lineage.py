"""Logs that split and merge: what is found, and what is legal though it looks alike."""

from pathlib import Path

import pytest
from msgspec import structs

from checkers.engine.protocol import Context
from checkers.lineage.check import check
from harness.core.errors import HistoryError
from harness.core.promises import StreamContract
from harness.core.record import Json, StreamEvent
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.lineages import STEPS, Told
from tests.worlds.run_cases import ENGINE

CONTRACT = StreamContract(closed="<=", cut="position", position="offset", unit_layout="one-order")
GROUP = structs.replace(CONTRACT, consumers="group")
HALF = STEPS // 2
LEFT, RIGHT = 0, STEPS - 1  # Keys: their hashes.


def judged(told: Told, folder: Path, contract: StreamContract = CONTRACT) -> Judgement:
    write_history(told.events, folder)
    return check(folder, Context(engine=ENGINE, contract=contract))


def found(told: Told, folder: Path, contract: StreamContract = CONTRACT) -> list[tuple[str, int]]:
    return [(each.anomaly, each.count) for each in judged(told, folder, contract).findings]


def split(*, who: str = "r") -> Told:
    """A log with a key on either side, and then the two that follow it."""
    told = Told()
    told.log("a", [], (0, STEPS), who=who)
    for key in (LEFT, RIGHT):
        told.hash(key, who=who)
        told.row("a", key + 1, key, who=who)
    return told


def followed(told: Told, *, end: str = "end") -> Told:
    told.mark(end, "a")
    told.log("b", ["a"], (0, HALF))
    told.log("c", ["a"], (HALF, STEPS))
    return told


def test_a_split_and_a_merge_in_order_are_legal_and_witnessed(tmp_path: Path) -> None:
    told = followed(split())
    told.row("b", 1, LEFT)
    told.row("c", 1, RIGHT)
    told.mark("end", "b")
    told.mark("end", "c")
    told.log("d", ["b", "c"], (0, STEPS))
    told.row("d", 1, LEFT)
    judgement = judged(told, tmp_path)
    assert judgement.findings == ()
    assert judgement.witnesses == {
        "lost-successor": 3, "key-space-overlap": 6, "changed-lineage": 4, "order-inversion": 3, "split-unit": 0,
        "unit-order": 0,
    }  # fmt: skip


def test_a_successor_that_is_lost_leaves_keys_without_a_log(tmp_path: Path) -> None:
    told = split()
    told.mark("end", "a")
    told.log("b", ["a"], (0, HALF))
    assert found(told, tmp_path / "open") == []  # Others may still be declared.
    told.row("b", 1, LEFT)
    judgement = judged(told, tmp_path / "closed")
    assert [each.anomaly for each in judgement.findings] == ["lost-successor"]
    assert "Log a is followed by b, and its keys in [4611686018427387904, 9223372036854775808) have no log" in (
        judgement.findings[0].sentence
    )


def test_successors_that_are_declared_together_may_come_in_any_order(tmp_path: Path) -> None:
    told = split()
    told.log("c", ["a"], (HALF, STEPS))
    told.hash(LEFT)
    told.log("b", ["a"], (0, HALF))
    told.mark("end", "a")
    assert found(told, tmp_path) == []


def test_a_successor_of_two_logs_is_declared_before_the_others_of_the_second_one(tmp_path: Path) -> None:
    """One reader comes to the end of b while another one still reads c, which has a successor besides."""
    told = Told()
    told.log("b", [], (0, HALF))
    told.log("c", [], (HALF, STEPS))
    told.mark("end", "b")
    told.log("d", ["b", "c"], (0, HALF + 1))
    told.mark("open", "d")
    assert found(told, tmp_path / "one") == []
    told.mark("end", "c", who="other")
    assert found(told, tmp_path / "ended") == []
    told.log("d", ["b", "c"], (0, HALF + 1), who="other")
    told.row("c", 1, RIGHT, who="other")
    assert found(told, tmp_path / "lost") == [("lost-successor", 1)]
    told.events.insert(-1, told.events[-2])
    told.log("e", ["c"], (HALF + 1, STEPS), who="other")
    told.row("e", 1, RIGHT, who="other")
    assert "lost-successor" not in [name for name, _ in found(told, tmp_path / "declared")]


def test_a_key_has_one_log_at_a_time(tmp_path: Path) -> None:
    told = split()
    told.log("b", ["a"], (0, HALF + 1))
    told.log("c", ["a"], (HALF, STEPS))
    assert found(told, tmp_path / "twins") == [("key-space-overlap", 1)]
    first = Told()
    first.log("a", [], (0, HALF))
    first.log("b", [], (HALF - 1, STEPS))
    assert found(first, tmp_path / "first") == [("key-space-overlap", 1)]
    grown = Told()
    grown.log("a", [], (0, HALF))
    grown.log("b", [], (HALF, STEPS))
    grown.log("c", ["a"], (0, HALF + 1))
    assert found(grown, tmp_path / "grown") == [("key-space-overlap", 1)]


def test_what_is_not_known_is_not_claimed(tmp_path: Path) -> None:
    """A recording of some logs, with parents that were never declared, or without ranges."""
    told = Told()
    told.log("b", ["a"], (0, HALF))
    told.log("d", ["c", "b"], (0, STEPS))
    told.row("b", 1, LEFT)
    told.log("e", [])
    told.log("f", ["e"], (0, STEPS))
    told.row("f", 1, RIGHT)
    assert found(told, tmp_path) == []


def test_a_log_has_one_declaration(tmp_path: Path) -> None:
    told = split()
    told.log("a", [], (0, STEPS), who="other")
    assert found(told, tmp_path / "again") == []
    told.log("a", [], (0, HALF), who="other")
    assert found(told, tmp_path / "changed") == [("changed-lineage", 1)]


def test_an_event_of_a_log_that_comes_after_its_successors_is_an_inversion(tmp_path: Path) -> None:
    told = split()
    told.log("b", ["a"], (0, STEPS))
    told.row("b", 1, LEFT)
    told.row("a", STEPS + 5, RIGHT)  # Another key: without an end of the log nothing is claimed.
    assert found(told, tmp_path / "legal") == []
    told.row("a", STEPS + 6, LEFT)
    assert found(told, tmp_path / "inverted") == [("order-inversion", 1)]


def test_a_log_is_read_after_the_end_of_its_parents_that_have_the_key(tmp_path: Path) -> None:
    told = Told()
    told.log("a", [], (0, HALF))
    told.log("b", [], (HALF, STEPS))
    for key in (LEFT, RIGHT):
        told.hash(key)
    told.mark("open", "a")
    told.mark("open", "b")
    told.mark("end", "a")
    told.log("c", ["a", "b"], (0, STEPS))
    told.row("c", 1, LEFT)
    assert found(told, tmp_path / "left") == []
    told.mark("end", "b")
    assert found(told, tmp_path / "other-parent") == []  # It does not have that key.
    told.events.insert(-1, told.events[-2].__class__(**{
        name: getattr(told.events[-2], name) for name in StreamEvent.__struct_fields__ if name != "key"
    }, key=RIGHT))  # fmt: skip
    assert found(told, tmp_path / "early") == [("order-inversion", 1)]


def test_a_truncated_parent_is_covered_by_its_gap(tmp_path: Path) -> None:
    told = followed(split(), end="gap")
    told.row("b", 1, LEFT)
    told.mark("end", "a")
    assert found(told, tmp_path / "covered") == []
    told.row("a", STEPS + 1, LEFT)
    assert [name for name, _ in found(told, tmp_path / "after")] == ["order-inversion"]


def test_what_a_gap_has_skipped_may_still_come_to_another_reader_of_the_group(tmp_path: Path) -> None:
    """As in a run of Pravega, retention, seed 200067: a removed reader goes on where another skipped."""
    told = split(who="r1")
    told.mark("gap", "a", who="r2", position=STEPS + 4)
    told.mark("end", "a", who="r2")
    told.log("b", ["a"], (0, STEPS), who="r2")
    told.row("b", 1, LEFT, who="r2")
    told.row("a", STEPS + 3, LEFT, who="r1")
    assert found(told, tmp_path / "skipped", GROUP) == []
    told.row("a", STEPS + 4, LEFT, who="r1")
    assert found(told, tmp_path / "behind", GROUP) == [("order-inversion", 1)]


def test_events_that_come_again_and_readers_that_go_back_are_legal(tmp_path: Path) -> None:
    told = followed(split())
    told.row("b", 1, LEFT)
    told.row("a", 1, LEFT)  # It came before.
    assert found(told, tmp_path / "again") == []
    back = Told()
    back.log("b", ["a"], (0, STEPS))
    back.row("b", 1, LEFT)
    back.mark("open", "a", session=1)
    back.row("a", 1, LEFT, session=1)
    assert found(back, tmp_path / "back") == []
    back.row("a", 2, LEFT)
    back.events[-1], back.events[-3] = back.events[-3], back.events[-1]
    assert [name for name, _ in found(back, tmp_path / "one session")] == ["order-inversion"]


def test_subscribers_are_judged_apart_unless_they_share_the_events(tmp_path: Path) -> None:
    told = split(who="r1")
    told.log("b", ["a"], (0, STEPS), who="r2")
    told.row("b", 1, LEFT, who="r2")
    told.row("a", STEPS + 1, LEFT, who="r1")
    assert found(told, tmp_path / "each") == []
    assert found(told, tmp_path / "group", GROUP) == [("order-inversion", 1)]


def test_the_rows_of_a_unit_stand_together(tmp_path: Path) -> None:
    told = Told()
    for position, unit in enumerate((1, 1, None, 2, 2)):
        told.row("a", position, LEFT, unit)
    assert found(told, tmp_path / "together") == []
    told.row("a", 5, LEFT)
    told.row("a", 6, RIGHT, 2)
    assert found(told, tmp_path / "split") == [("split-unit", 1)]
    mixed = judged(told, tmp_path / "mixed", structs.replace(CONTRACT, unit_layout="mixed"))
    assert (mixed.findings, mixed.witnesses["split-unit"]) == ((), 0)


def test_units_have_one_order_over_all_logs(tmp_path: Path) -> None:
    told = Told()
    for log, units in (("a", (1, 2)), ("b", (2, 3)), ("c", (1, 3))):
        for position, unit in enumerate(units):
            told.row(log, position, LEFT, unit)
    assert found(told, tmp_path / "one") == []
    told.row("d", 0, LEFT, 3)
    told.row("d", 1, LEFT, 1)
    assert found(told, tmp_path / "together", structs.replace(CONTRACT, unit_layout="together")) == []
    judgement = judged(told, tmp_path / "cycle")
    assert [each.anomaly for each in judgement.findings] == ["unit-order"]
    assert judgement.witnesses["unit-order"] == 3


def test_a_log_comes_before_those_that_follow_it_also_for_units(tmp_path: Path) -> None:
    told = split()
    told.row("a", STEPS + 1, LEFT, 1)
    told.mark("end", "a")
    told.log("b", ["a"], (0, STEPS))
    told.row("b", 1, LEFT, 2)
    told.row("x", 1, LEFT, 2)
    assert found(told, tmp_path / "one") == []
    told.row("x", 2, LEFT, 1)
    assert found(told, tmp_path / "other") == [("unit-order", 1)]


@pytest.mark.parametrize(
    ("kind", "span", "value", "problem"),
    [
        ("successors", "a", {"parents": "p"}, "successors at journal position 0 cannot be read"),
        ("successors", "a", {"ranges": [[5, 5]]}, r"\[5, 5\) is no range of hashes"),
        ("successors", None, {"parents": []}, "it names no log"),
        ("successors", "a", None, "cannot be read"),
        ("hash", None, "x", "has the value x; it must be the hash of its key"),
        ("hash", None, -1, "has the value -1"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_named(
    tmp_path: Path, kind: str, span: str | None, value: Json, problem: str
) -> None:
    write_history([StreamEvent(0, "r", 0, 0, kind, span, 1, value)], tmp_path / "h")
    with pytest.raises(HistoryError, match=problem):
        check(tmp_path / "h", Context(engine=ENGINE, contract=CONTRACT))
