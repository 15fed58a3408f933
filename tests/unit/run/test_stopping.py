"""A run that is ended at its first violation keeps the same evidence, whenever somebody looked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from clusters.tutorial.promises import PROMISES
from harness.core.errors import HistoryError
from harness.core.record import SCHEMA, Evidence, Footer, Header, Mark, Record, StreamEvent
from harness.record.journal import JournalWriter, end_after, is_stopped, read_journal
from harness.run.stopping import FirstViolation, forbidden
from tests.worlds.run_files import run_file


def event(at: int, kind: str, position: int, session: int = 1, key: str | None = None) -> StreamEvent:
    value = None if key is None else position
    ordinal = None if key is None else 0
    return StreamEvent(at, "s1", session, at, kind, None, key, value, position, ordinal)


def mark(at: int, phase: str = "tick") -> Mark:
    return Mark(at, phase)


CLEAN: list[Evidence] = [
    mark(0, "load"),
    event(1, "open", 0),
    event(2, "row", 1, key="x"),
    event(3, "watermark", 1),
    mark(4),
]
RESUMED: list[Evidence] = [
    event(5, "open", 0, session=2),
    event(6, "row", 1, session=2, key="x"),
    event(7, "row", 2, session=2, key="y"),
    event(8, "watermark", 2, session=2),
]
LATE: list[Evidence] = [
    *CLEAN,
    *RESUMED,
    event(9, "row", 2, session=2, key="z"),
    event(10, "row", 3, session=2, key="x"),
]
AFTER: list[Evidence] = [mark(11), event(12, "row", 4, session=2, key="y"), mark(13)]


def written(path: Path, records: Sequence[Record], first: FirstViolation | None = None, step: int = 1) -> list[bool]:
    """Write that as a journal; what `first` says meanwhile, when it looks after each `step` records."""
    said = []
    with JournalWriter(path) as writer:
        writer.append(Header(SCHEMA, "2026-01-01T00:00:00Z"))
        for number, record in enumerate(records, 1):
            writer.append(record)
            if first is not None and number % step == 0:
                said.append(first.look())
    return said


@pytest.mark.parametrize("step", [1, 2, 5, 100])
def test_what_is_kept_does_not_depend_on_when_somebody_looked(tmp_path: Path, step: int) -> None:
    journal = tmp_path / "journal.log"
    first = FirstViolation(journal, run_file())
    written(journal, [*LATE, *AFTER], first, step)
    reason = first.close()
    assert reason == "stopped at the first violation: late-event-boundary of s1, 0.000 s"
    assert list(read_journal(journal))[1:] == [*LATE, AFTER[0], Footer(11, reason)]


def test_the_run_goes_on_until_the_next_milestone(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    said = written(journal, [*LATE, *AFTER], FirstViolation(journal, run_file()))
    assert said.index(True) == len(LATE)


def test_in_containers_the_run_ends_at_once_and_all_is_kept(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    first = FirstViolation(journal, run_file("docker"))
    said = written(journal, LATE, first)
    assert said.index(True) == len(LATE) - 2
    reason = first.close()
    assert list(read_journal(journal))[1:] == [*LATE, Footer(9, reason or "")]


@pytest.mark.parametrize("runtime", ["sim", "docker"])
def test_a_run_that_had_come_to_its_end_was_not_stopped(tmp_path: Path, runtime: Literal["sim", "docker"]) -> None:
    journal = tmp_path / "journal.log"
    first = FirstViolation(journal, run_file(runtime))
    whole = [*LATE, mark(11, "end"), Footer(11, "completed", "abc")]
    written(journal, whole, first, step=len(whole))
    assert first.close() is None
    assert list(read_journal(journal))[1:] == whole


def test_a_run_without_violation_goes_on(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    first = FirstViolation(journal, run_file())
    assert not any(written(journal, [*CLEAN, *RESUMED, *AFTER], first))
    assert first.close() is None


def test_what_no_promise_forbids_stops_nothing(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    others = [promise for promise in PROMISES if "late-event" not in promise.forbids]
    first = FirstViolation(journal, run_file(promises=others))
    assert not any(written(journal, [*LATE, *AFTER], first))
    assert "late-event" in forbidden(PROMISES)
    assert "late-event" not in forbidden(others)


def test_a_cluster_without_a_stream_is_not_watched(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    first = FirstViolation(journal, msgspec.structs.replace(run_file(), stream=None))
    assert not any(written(journal, [*LATE, *AFTER], first))
    assert first.close() is None


def test_only_the_footer_says_that_a_run_was_stopped() -> None:
    assert is_stopped(Footer(1, "stopped at the first violation: late-event of s1, 1.000 s"))
    assert not is_stopped(Footer(1, "completed"))
    assert not is_stopped(None)


def test_a_journal_is_not_cut_where_it_has_too_little(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    written(journal, CLEAN)
    before = journal.read_bytes()
    with pytest.raises(HistoryError, match=r"6 records were expected, and only 5 are whole"):
        end_after(journal, 6, Footer(1, "stopped"))
    assert journal.read_bytes() == before


def test_a_torn_tail_is_cut_off(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    written(journal, CLEAN)
    journal.write_bytes(journal.read_bytes() + b"\0\0\0\x20torn")
    end_after(journal, len(CLEAN), Footer(9, "stopped"))
    assert list(read_journal(journal))[1:] == [*CLEAN, Footer(9, "stopped")]
