"""Evidence that is damaged: `check` exits 4, with one line that names the file and the place in it."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.core.record import Footer
from harness.record.formats.parquet.parquet import write_history
from harness.record.journal import JournalWriter, read_journal
from tests.command.conftest import Seamark

EDN = """{:type :invoke, :f :txn, :value [[:append :x 1]], :process 0, :index 0}
{:type :ok, :f :txn, :value [[:append :x 1]], :process 0, :index 1}
"""


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("broken.edn", EDN + "{:type :invoke, :f ", "line 3"),
        ("broken.edn", EDN + "}", "line 3"),
        ("broken.edn", EDN.replace(":ok", ":okay"), "operation 1"),
        ("broken.jsonl", '{"type": "invoke", "time_ns": 0}\n', "line 1"),
        ("broken.jsonl", '{"type": "mark", "time_ns": 0, "phase": "load"}\n{"type": ', "line 2"),
        ("broken.json", '[{"type": "invoke", "f": "txn", "process": 0, "value": []}, 7]', "element 2"),
        ("broken.parquet", "PAR1 but no more", "broken.parquet"),
    ],
)
def test_a_damaged_file_is_named_with_the_place(
    seamark: Seamark, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    outcome = seamark("check", name, "--engine", "local")
    assert (outcome.code, outcome.out) == (4, "")
    assert message in outcome.line
    assert name in outcome.line


def test_a_file_in_no_known_format_is_bad_usage(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no history at all", encoding="utf-8")
    outcome = seamark("check", "notes.txt", "--engine", "local")
    assert (outcome.code, outcome.out) == (64, "")
    assert "notes.txt: is in no format that I read" in outcome.line


def test_a_journal_damaged_in_the_middle_is_named_with_the_record(seamark: Seamark, run_copy: Path) -> None:
    forget_history(run_copy)
    journal = run_copy / "journal.log"
    content = bytearray(journal.read_bytes())
    content[len(content) // 2] ^= 0xFF
    journal.write_bytes(content)
    outcome = seamark("check", run_copy, "--engine", "local")
    assert (outcome.code, outcome.out) == (4, "")
    assert "journal.log: record " in outcome.line


def test_a_torn_tail_is_no_damage(seamark: Seamark, run_copy: Path) -> None:
    forget_history(run_copy)
    journal = run_copy / "journal.log"
    journal.write_bytes(journal.read_bytes()[:-7])
    outcome = seamark("check", run_copy, "--engine", "local", "--json")
    assert (outcome.code, outcome.json["clause"], outcome.json["incomplete"]) == (3, "e", True)


@pytest.mark.parametrize("is_run", [True, False])
def test_of_a_journal_cut_short_that_is_said_first(seamark: Seamark, run_copy: Path, *, is_run: bool) -> None:
    """Not that no operation succeeded, nor that a promise was not exercised: both follow from it."""
    forget_history(run_copy)
    journal = run_copy / "journal.log"
    journal.write_bytes(journal.read_bytes()[:60])
    outcome = seamark("check", run_copy if is_run else journal, "--engine", "local", "--quiet")
    assert outcome.code == 3
    verdict = outcome.out.splitlines()[0]
    assert verdict.startswith("VACUOUS")
    assert verdict.endswith("the run did not come to its end: its journal was cut short (exit 3)")


@pytest.mark.parametrize("name", ["ops", "mops", "events", "faults", "marks"])
def test_a_damaged_parquet_file_of_a_run_is_named(seamark: Seamark, run_copy: Path, name: str) -> None:
    file = run_copy / "history" / f"{name}.parquet"
    content = bytearray(file.read_bytes())
    column = pq.read_metadata(file).row_group(0).column(0)
    end = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size
    content[end - 8 : end] = bytes(byte ^ 0xFF for byte in content[end - 8 : end])
    file.write_bytes(content)
    outcome = seamark("check", run_copy, "--engine", "local")
    assert (outcome.code, outcome.out) == (4, "")
    assert f"{name}.parquet" in outcome.line


def test_a_column_with_nonsense_is_named(seamark: Seamark, run_copy: Path) -> None:
    file = run_copy / "history" / "ops.parquet"
    table = pq.read_table(file)
    place = table.schema.get_field_index("outcome")
    nonsense = pa.array([7] * table.num_rows, table.schema.field(place).type)
    pq.write_table(table.set_column(place, table.schema.field(place), nonsense), file)
    outcome = seamark("check", run_copy, "--engine", "local")
    assert (outcome.code, outcome.out) == (4, "")
    assert "ops.parquet: an outcome" in outcome.line


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": 99}', b"\xff"])
@pytest.mark.parametrize("command", ["check", "replay", "run"])
def test_a_damaged_run_json_is_named(seamark: Seamark, run_copy: Path, command: str, content: bytes) -> None:
    (run_copy / "run.json").write_bytes(content)
    outcome = seamark(command, run_copy / "run.json", "--engine", "local")
    assert outcome.code in (4, 64)
    assert outcome.out == ""
    assert "run.json" in outcome.line


def test_a_damaged_report_is_named_and_made_again_by_check(seamark: Seamark, run_copy: Path) -> None:
    (run_copy / "report.json").write_text('{"verdict": 3}', encoding="utf-8")
    outcome = seamark("list")
    assert "report.json" in outcome.out + outcome.err
    assert outcome.code == 4
    assert seamark("check", run_copy, "--engine", "local", "--quiet").code == 0
    assert seamark("list").code == 0


def forget_history(run: Path) -> None:
    """Leave the journal only, as if the history had not been written yet."""
    for file in (run / "history").iterdir():
        file.unlink()
    (run / "history").rmdir()


@pytest.mark.parametrize("lost", ["ops", "mops"])
def test_what_is_left_of_a_history_without_a_journal_is_kept(seamark: Seamark, run_copy: Path, lost: str) -> None:
    (run_copy / "journal.log").unlink()
    (run_copy / "history" / f"{lost}.parquet").unlink()
    before = sorted((run_copy / "history").iterdir())
    for command in ("check", "export"):
        outcome = seamark(command, run_copy, *(("--engine", "local") if command == "check" else ()))
        assert (outcome.code, outcome.out) == (4, "")
        assert "there is no journal.log to write them again from" in outcome.line
    assert sorted((run_copy / "history").iterdir()) == before


@pytest.mark.parametrize("command", ["check", "export"])
def test_a_pipe_is_no_history(seamark: Seamark, tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "h.edn")
    outcome = seamark(command, "h.edn")
    assert (outcome.code, "is a pipe or a device" in outcome.line) == (4, True)


@pytest.mark.parametrize("name", ["journal.log", "history"])
def test_a_recording_that_was_cut_short_passes_under_no_name(seamark: Seamark, run_copy: Path, name: str) -> None:
    whole = seamark("check", run_copy / name, "--engine", "local", "--quiet")
    assert "stream events were not judged" in whole.out  # Alone it has no contract, which run.json holds.
    records = [each for each in read_journal(run_copy / "journal.log") if not isinstance(each, Footer)]
    (run_copy / "journal.log").unlink()
    with JournalWriter(run_copy / "journal.log") as writer:
        for record in records:
            writer.append(record)
    write_history(records, run_copy / "history")
    outcome = seamark("check", run_copy / name, "--engine", "local", "--json")
    assert (outcome.code, outcome.json["clause"], outcome.json["incomplete"]) == (3, "e", True)


def test_a_traceback_goes_into_no_file_that_has_another_name(
    seamark: Seamark, run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("what nobody expected")

    (tmp_path / "outside").write_text("of somebody else")
    (run_copy.parent.parent / "seamark-error.log").hardlink_to(tmp_path / "outside")
    monkeypatch.setattr("harness.run.checking.judge_run", broken)
    outcome = seamark("check", run_copy, "--engine", "local")
    assert (outcome.code, "which is a link to another file" in outcome.line) == (4, True)
    assert (tmp_path / "outside").read_text() == "of somebody else"
