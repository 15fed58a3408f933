"""`seamark export`: what goes out is what comes in again."""

from pathlib import Path

from harness.core.record import Complete, Invoke
from harness.record.formats.edn.exchange import read_edn_history
from harness.record.formats.jsonl import read_jsonl
from harness.record.formats.parquet.parquet import records_of
from harness.record.journal import JournalWriter, read_journal
from tests.command.conftest import Seamark

EDN = """\
{:type :invoke, :f :txn, :value [[:append :x 1] [:r :y nil]], :process 0, :time 5}
{:type :info, :f :kill, :process :nemesis, :value nil, :time 6}
{:type :ok, :f :txn, :value [[:append :x 1] [:r :y [1 "a"]]], :process 0, :time 7}
"""
EXPORTED = """\
{:index 0, :type :invoke, :process 0, :f :txn, :value [[:append :x 1] [:r :y nil]], :time 5}
{:index 1, :type :ok, :process 0, :f :txn, :value [[:append :x 1] [:r :y [1 "a"]]], :time 7}
"""


def test_a_foreign_history_goes_to_standard_output(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "h.edn").write_text(EDN)
    outcome = seamark("export", "h.edn")
    assert (outcome.code, outcome.out) == (0, EXPORTED)
    assert outcome.line == "seamark: 1 nemesis operations skipped"


def test_a_run_goes_out_as_json_lines_with_all_its_records(seamark: Seamark, run_copy: Path, tmp_path: Path) -> None:
    outcome = seamark("export", run_copy, "--format", "jsonl", "--output", tmp_path / "out.jsonl")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert list(read_jsonl(tmp_path / "out.jsonl")) == list(records_of(run_copy / "history"))
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["out.jsonl"]


def test_a_run_goes_out_as_edn_with_its_operations_and_the_rest_is_counted(
    seamark: Seamark, run_copy: Path, tmp_path: Path
) -> None:
    outcome = seamark("export", run_copy, "--output", tmp_path / "out.edn")
    assert outcome.code == 0
    recorded = list(records_of(run_copy / "history"))
    operations = [each for each in recorded if isinstance(each, Invoke | Complete)]
    assert 0 < len(operations) < len(recorded)
    assert f"{len(recorded) - len(operations):,} records that are not operations" in outcome.line
    again = list(read_edn_history(tmp_path / "out.edn"))
    assert [(type(each), each.index, each.time_ns) for each in again if isinstance(each, Invoke | Complete)] == [
        (type(each), each.index, each.time_ns) for each in operations
    ]


def test_the_same_goes_out_from_a_journal_and_from_parquet(seamark: Seamark, run_copy: Path, tmp_path: Path) -> None:
    paths = [run_copy, run_copy / "run.json", run_copy / "journal.log", run_copy / "history"]
    for number, path in enumerate(paths):
        assert seamark("export", path, "--format", "jsonl", "--output", f"{number}.jsonl").code == 0
    (run_copy / "journal.log").unlink()
    assert seamark("export", run_copy, "--format", "jsonl", "--output", "4.jsonl").code == 0
    assert len({path.read_bytes() for path in tmp_path.glob("*.jsonl")}) == 1


def test_the_judgement_on_what_went_out_is_that_on_what_came_in(seamark: Seamark, tmp_path: Path) -> None:
    """A stale read, under real time: found in the original, and in both exports."""
    lines = ["invoke [[:append 1 1]]", "ok [[:append 1 1]]", "invoke [[:r 1 nil]]", "ok [[:r 1 nil]]"]
    maps = [line.split(" ", 1) for line in [*lines, "invoke [[:r 1 nil]]", "ok [[:r 1 [1]]]"]]
    text = "\n".join(f"{{:type :{kind}, :f :txn, :value {value}}}" for kind, value in maps)
    (tmp_path / "h.edn").write_text(text)
    for name in ("edn", "jsonl"):
        assert seamark("export", "h.edn", "--format", name, "--output", f"out.{name}").code == 0
    found = [seamark("check", file, "--engine", "local", "--json") for file in ("h.edn", "out.edn", "out.jsonl")]
    assert [outcome.code for outcome in found] == [1, 1, 1]
    assert found[0].json["findings"] == found[1].json["findings"] == found[2].json["findings"]


def test_what_cannot_be_exported_is_said_in_a_line(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "h.edn").write_text(EDN)
    (tmp_path / "there").write_text("")
    for arguments, code, told in [
        (["nowhere"], 64, "nowhere"),
        (["h.edn", "--output", "there"], 64, "it already exists"),
        (["h.edn", "--output", "no/folder"], 64, "cannot be written"),
        (["h.edn", "--format", "jsnl"], 64, "'edn'"),
        (["there"], 4, "is empty: there is no history in it"),
    ]:
        outcome = seamark("export", *arguments)
        assert (outcome.code, outcome.out) == (code, ""), outcome
        assert told in outcome.line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h.edn", "there"]


def test_a_journal_whose_completion_has_no_invocation_is_named(seamark: Seamark, run_copy: Path) -> None:
    records = list(read_journal(run_copy / "journal.log"))
    first = next(each for each in records if isinstance(each, Invoke))
    (run_copy / "journal.log").unlink()
    with JournalWriter(run_copy / "journal.log") as writer:
        for record in records:
            if record != first:
                writer.append(record)
    outcome = seamark("export", run_copy, "--format", "edn")
    assert (outcome.code, outcome.out) == (4, "")
    assert f"operation {first.index} completes, and was not invoked before" in outcome.line
