"""Times that fall: the order of the file is no proof of real time, and the order of times is one of one clock only."""

from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from harness.judging.judge import judge
from harness.record.formats.load import load
from harness.report.model import Report

# A recorder that writes call and answer together: T1 reads x as empty from 0 to 10, T0 appends from 2 to 5.
PAIRS = (
    (1, "[:append :x 1]", "[:append :x 1]", 2, 5),
    (0, "[:r :x nil]", "[:r :x []]", 0, 10),
    (1, "[:r :x nil]", "[:r :x [1]]", 12, 14),
)


Operations = tuple[tuple[int, str, str, int | None, int | None], ...]


def report(folder: Path, operations: Operations, model: str | None = None) -> Report:
    """The report on those operations: process, call, answer, and the times of both."""
    lines = []
    for process, call, answer, begin, end in operations:
        for kind, value, time in ((":invoke", call, begin), (":ok", answer, end)):
            at = "" if time is None else f", :time {time}"
            lines.append(f"{{:type {kind}, :process {process}, :f :txn, :value [{value}]{at}}}")
    (folder / "h.edn").write_text("\n".join(lines))
    return judge(load(folder / "h.edn", folder), engine=LocalEngine(1), model=model)


def note(judged: Report) -> str:
    notes = judged.facts.get("notes") or [""]
    assert isinstance(notes, list)
    return str(notes[0])


def test_operations_are_ordered_by_time_where_the_file_is_not(tmp_path: Path) -> None:
    judged = report(tmp_path, PAIRS)
    assert judged.verdict == "valid"
    assert note(judged).startswith("times fall back in h.edn: operations are ordered by their times")


def test_what_times_prove_is_found(tmp_path: Path) -> None:
    late = (PAIRS[0], (0, "[:r :x nil]", "[:r :x []]", 6, 10), (1, "[:r :x nil]", "[:r :x [1]]", 5, 14))
    assert report(tmp_path, (late[2], late[0], late[1])).findings == ()  # Process 1 falls: nothing is claimed.
    stale = ((2, "[:append :y 1]", "[:append :y 1]", 20, 30), *late[:2], (1, "[:r :x nil]", "[:r :x [1]]", 12, 14))
    assert {each.anomaly for each in report(tmp_path, stale).findings} == {"G-single-realtime"}


def test_equal_times_are_concurrent(tmp_path: Path) -> None:
    touching = (
        (2, "[:append :y 1]", "[:append :y 1]", 20, 30),
        (1, "[:append :x 1]", "[:append :x 1]", 2, 6),
        (0, "[:r :x nil]", "[:r :x []]", 6, 10),
        (1, "[:r :x nil]", "[:r :x [1]]", 6, 6),
    )
    assert report(tmp_path, touching).verdict == "valid"


@pytest.mark.parametrize(
    ("operations", "why"),
    [
        ((*PAIRS, (2, "[:r :x nil]", "[:r :x []]", None, None)), "some operations have none"),
        ((PAIRS[2], PAIRS[0], (2, "[:r :x nil]", "[:r :x []]", 20, 21)), "those of one process, too"),
    ],
)
def test_without_one_order_of_time_real_time_is_unknown(operations: Operations, why: str, tmp_path: Path) -> None:
    judged = report(tmp_path, operations)
    assert (judged.verdict, judged.findings) == ("unknown", ())
    assert "give each map the time of one clock, or choose a model without real time" in judged.reason
    assert f"{why}: all operations count as concurrent, so real time is not claimed, but the order of" in note(judged)
    assert report(tmp_path, operations, "strong-session-serializable").verdict == "valid"


def test_without_one_order_of_time_a_process_still_does_one_thing_after_another(tmp_path: Path) -> None:
    appends = (1, "[:append :x 1]", "[:append :x 1]", 20, 30)
    misses = (1, "[:r :x nil]", "[:r :x []]", 40, 50)
    sees = (2, "[:r :x nil]", "[:r :x [1]]", 3, None)
    judged = report(tmp_path, (appends, misses, sees))
    assert {each.anomaly for each in judged.findings} == {"G-single-process"}
    assert "Process 1 ran T0 before T1" in judged.findings[0].sentence
    elsewhere = (2, *misses[1:])
    assert report(tmp_path, (appends, elsewhere, (3, *sees[1:]))).findings == ()
    back = (1, *misses[1:3], 10, 15)  # Its own times fall, so the file's order is none of process 1.
    assert report(tmp_path, (appends, back, sees)).findings == ()


def test_times_that_rise_change_nothing_and_need_no_note(tmp_path: Path) -> None:
    in_turn = tuple((*each[:3], 2 * at, 2 * at + 1) for at, each in enumerate(PAIRS))
    judged = report(tmp_path, in_turn)
    assert ({each.anomaly for each in judged.findings}, note(judged)) == ({"G-single-realtime"}, "")


def test_minus_one_is_neither_a_time_nor_an_index(tmp_path: Path) -> None:
    maps = "{:index -1, :time -1, :type :ok, :process 0, :f :txn, :value [[:append :x 1]]}\n" * 2
    (tmp_path / "h.edn").write_text(maps.replace("1]]}\n", "2]]}\n", 1) + maps.splitlines()[0].replace("x 1", "x 3"))
    judged = judge(load(tmp_path / "h.edn", tmp_path), engine=LocalEngine(1))
    assert (judged.verdict, note(judged)) == ("vacuous", "")
