"""A replay that is not exact says where, and is an error, whatever was found."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest

import harness.run.running
from harness.core.record import Complete, Footer, Mark, Record
from harness.record.journal import JournalWriter, read_journal
from tests.command.broken import BROKEN_CHILD
from tests.command.conftest import Seamark


def rewritten(run: Path, change: Callable[[list[Record]], Iterable[Record]]) -> list[Record]:
    """Write the run's journal again with valid checksums; returns its evidence."""
    journal = run / "journal.log"
    records = list(change(list(read_journal(journal))))
    journal.unlink()
    with JournalWriter(journal) as writer:
        for record in records:
            writer.append(record)
    return records[1:-1]


def test_an_altered_record_is_named_with_the_ten_before_it(seamark: Seamark, run_copy: Path) -> None:
    def altered(records: list[Record]) -> list[Record]:
        place = next(n for n, r in enumerate(records) if n > 500 and isinstance(r, Complete) and r.outcome == "ok")
        record = records[place]
        assert isinstance(record, Complete)
        assert record.commit_ts is not None
        records[place] = msgspec.structs.replace(record, commit_ts=record.commit_ts + 1)
        return records

    before = list(read_journal(run_copy / "journal.log"))[1:-1]
    evidence = rewritten(run_copy, altered)
    number = next(n for n, (one, other) in enumerate(zip(before, evidence, strict=True)) if one != other)
    outcome = seamark("replay", run_copy, "--engine", "local")
    assert outcome.code == 4
    lines = outcome.out.splitlines()
    place = next(n for n, line in enumerate(lines) if f"record {number}, the first that differs" in line)
    text = " ".join(lines)
    assert text.count(str(evidence[number])) == 1
    assert text.count(str(before[number])) == 1
    assert all(str(record) in text for record in evidence[number - 10 : number])
    assert str(evidence[number - 11]) not in text
    assert lines[0].startswith("DIFFERENT")
    assert place > 0
    (line,) = [line for line in lines if line.startswith("HARNESS ERROR")]
    assert f"record {number} differs" in line


def test_a_stream_and_a_node_that_moved_are_named(seamark: Seamark, run_copy: Path) -> None:
    def drifted(records: list[Record]) -> list[Record]:
        """From the third second on, one more draw was made, and one more event handled."""
        for place, record in enumerate(records):
            if isinstance(record, Mark) and record.time_ns >= 3 * 10**9:
                streams = record.streams | {"disk/n2": record.streams["disk/n2"] + 1}
                handled = record.handled | {"n2": record.handled["n2"] + 1}
                records[place] = msgspec.structs.replace(record, streams=streams, handled=handled)
        return records

    rewritten(run_copy, drifted)
    outcome = seamark("replay", run_copy, "--engine", "local", "--json")
    assert outcome.code == 4
    assert outcome.json["verdict"] == "error"
    assert "nodes that differ by the next second: n2\n" in outcome.err
    assert "random streams that differ: disk/n2\n" in outcome.err
    assert str(outcome.json["reason"]).endswith("by the next second also n2, disk/n2")


def test_a_journal_that_goes_on_differs_where_the_other_ends(seamark: Seamark, run_copy: Path) -> None:
    rewritten(run_copy, lambda records: [*records[:400], records[-1]])
    outcome = seamark("replay", run_copy, "--engine", "local")
    assert outcome.code == 4
    assert "record 399, the first that differs" in outcome.out
    assert "was     nothing: the journal ends" in outcome.out
    assert "not repeatable: the recorded journal ends before record 399, the repetition goes on" in outcome.out


@pytest.mark.parametrize("kept", [0, 1, 400, -1])
def test_a_killed_run_is_equal_as_far_as_it_was_recorded(seamark: Seamark, run_copy: Path, kept: int) -> None:
    """Its journal ends without a footer. The exit code is that of the verdict, as of every replay that is exact."""
    evidence = rewritten(run_copy, lambda records: records[:kept])
    shutil.rmtree(run_copy / "history")
    outcome = seamark("replay", run_copy, "--engine", "local")
    count = len(evidence) + (kept not in (0, 1))
    told = f"exact  {run_copy}  equal up to record {count}, where the killed run's journal ends"
    assert (outcome.code, outcome.out.splitlines()[0]) == (3, told)
    assert "its journal was cut short" in outcome.out
    assert "DIFFERENT" not in outcome.out


def test_a_killed_run_that_is_repeated_otherwise_is_a_difference(seamark: Seamark, run_copy: Path) -> None:
    def altered(records: list[Record]) -> list[Record]:
        place = next(n for n, r in enumerate(records) if n > 300 and isinstance(r, Complete) and r.outcome == "ok")
        record = records[place]
        assert isinstance(record, Complete)
        records[place] = msgspec.structs.replace(record, commit_ts=(record.commit_ts or 0) + 1)
        return records[:400]

    rewritten(run_copy, altered)
    outcome = seamark("replay", run_copy, "--engine", "local")
    assert outcome.code == 4
    assert outcome.out.startswith("DIFFERENT")


def test_another_unseed_is_a_difference_though_the_history_is_the_same(seamark: Seamark, run_copy: Path) -> None:
    def other(records: list[Record]) -> list[Record]:
        footer = records[-1]
        assert isinstance(footer, Footer)
        return [*records[:-1], msgspec.structs.replace(footer, unseed="0" * 32)]

    rewritten(run_copy, other)
    outcome = seamark("replay", run_copy, "--engine", "local", "--quiet")
    assert outcome.code == 4
    assert "another unseed" in outcome.out


def test_a_simulation_that_fails_is_no_repetition(
    seamark: Seamark, run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.run.running, "CHILDREN", {"sim": (BROKEN_CHILD, "machine")})
    outcome = seamark("replay", run_copy, "--engine", "local")
    assert (outcome.code, outcome.out) == (4, "")
    assert "raised ZeroDivisionError" in outcome.line


def test_a_run_in_containers_cannot_be_repeated_exactly(seamark: Seamark, run_copy: Path) -> None:
    text = (run_copy / "run.json").read_text(encoding="utf-8")
    (run_copy / "run.json").write_text(text.replace('"runtime": "sim"', '"runtime": "docker"'), encoding="utf-8")
    outcome = seamark("replay", run_copy, "--engine", "local")
    assert (outcome.code, outcome.out) == (64, "")
    assert "docker" in outcome.line
