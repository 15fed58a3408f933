"""What is said while a run goes on: its phase, how far behind a subscriber is in time, and never more than a line."""

from pathlib import Path

import pytest

from harness.core.record import SCHEMA, Complete, Fault, Header, Mark, Record, StreamEvent
from harness.record.journal import JournalWriter
from harness.run.live import LiveLine, Notes

S = 1_000_000_000
EPOCH = 1 << 32


def line(folder: Path, *records: Record, width: int = 78) -> str:
    with JournalWriter(folder / "journal.log") as journal:
        journal.append(Header(SCHEMA, "2026-01-01T00:00:00Z"))
        for record in records:
            journal.append(record)
    return LiveLine(folder / "journal.log").text(width)


def done(index: int, at_s: float, epoch: int) -> Complete:
    return Complete(index, int(at_s * S), "ok", commit_ts=epoch * EPOCH)


def announced(epoch: int, at_s: float) -> StreamEvent:
    return StreamEvent(int(at_s * S), "s1", 0, epoch, "watermark", position=epoch * EPOCH)


BEGUN = (Mark(2 * S, "set-up"), Mark(2 * S, "load"))


def test_before_anything_is_recorded_the_run_is_starting(tmp_path: Path) -> None:
    assert LiveLine(tmp_path / "journal.log").text().endswith(" s  starting")


@pytest.mark.parametrize(
    ("phase", "shown"), [("load", "load"), ("healing", "healing"), ("final", "final reads"), ("end", "stopping")]
)
def test_the_phase_is_named(tmp_path: Path, phase: str, shown: str) -> None:
    assert line(tmp_path, *BEGUN, Mark(9 * S, phase)).startswith(f"  9.0 s  {shown}")


def test_the_lag_is_the_age_of_the_oldest_commit_without_a_watermark_over_it(tmp_path: Path) -> None:
    commits = [done(number, 3 + number, epoch=number) for number in range(5)]
    shown = line(tmp_path, *BEGUN, *commits[:2], announced(1, 4.5), *commits[2:])
    assert shown.endswith("s1 2.0 s behind")  # Epoch 2 committed at 5 s, and it is 7 s now.
    assert "positions" not in shown


def test_a_subscriber_that_has_all_is_not_behind_however_far_positions_jump(tmp_path: Path) -> None:
    shown = line(tmp_path, *BEGUN, done(0, 3, 1), announced(7, 3.1), done(1, 4, 7))
    assert shown.endswith("s1 0.0 s behind")


def test_the_rate_counts_from_the_begin_of_the_load(tmp_path: Path) -> None:
    assert "  10 op/s  " in line(tmp_path, *BEGUN, *(done(number, 3, number) for number in range(10)))


@pytest.mark.parametrize("width", [30, 58, 78])
def test_it_fits_whatever_is_in_force(tmp_path: Path, width: int) -> None:
    faults = [Fault(3 * S, step, "begin", kind, ("n1",)) for step, kind in enumerate(("slow-subscriber", "partition"))]
    shown = line(tmp_path, *BEGUN, *(done(n, 3, n) for n in range(2_000)), announced(1, 3), *faults, width=width)
    assert len(shown) <= width
    assert ("2 faults" in shown) == (width > 50)


def test_a_fault_whose_name_does_not_fit_is_counted(tmp_path: Path) -> None:
    fault = Fault(2 * S, 0, "begin", "slow-subscriber", ("s1",))
    shown = line(tmp_path, *BEGUN, *(done(n, 3, n) for n in range(2_000)), fault, width=52)
    assert "1 fault" in shown
    assert len(shown) <= 52


def test_notes_of_a_child_are_read_once_and_only_whole(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    notes = Notes(log)
    assert list(notes.read()) == []
    log.write_text("warming up\nnote: n1 is not ready after 10 s; it said: no\nnote: n2")
    assert list(notes.read()) == ["n1 is not ready after 10 s; it said: no"]
    log.write_text(log.read_text() + " is not\n")
    assert list(notes.read()) == ["n2 is not"]
