"""`seamark check --shrink`: the smallest part of a history that still has its finding, judged by the same command."""

from pathlib import Path

import msgspec
import pytest

from harness.core.errors import ScenarioError
from harness.core.record import Complete, Evidence, Invoke, MicroOp
from harness.core.verdict import Step
from harness.record.formats.jsonl import read_jsonl, write_jsonl
from harness.report.model import FindingRow, Report
from harness.report.pictures.dot import dot
from harness.shrink.history import shrunk
from tests.command.conftest import Seamark
from tests.command.test_promise_file import PROMISES
from tests.command.test_promise_file import history as late


def history(path: Path, transactions: list[tuple[str, str]]) -> Path:
    """One transaction after another, each with its invocation and its completion."""
    lines = []
    for place, (asked, answered) in enumerate(transactions):
        for offset, kind, value in ((0, "invoke", asked), (5, "ok", answered)):
            lines.append(
                f"{{:type :{kind}, :f :txn, :value [{value}], :process {place % 5}, :time {place * 10 + offset}}}"
            )
    path.write_text("\n".join(lines) + "\n")
    return path


def appended(key: int, value: int, seen: list[int] | None = None) -> tuple[str, str]:
    """An append, and then a read of the same key that shows `seen`."""
    if seen is None:
        return (f"[:append {key} {value}]",) * 2
    return f"[:r {key} nil]", f"[:r {key} [{' '.join(map(str, seen))}]]"


def stale(path: Path) -> Path:
    """A hundred appends to each of two keys with reads between; one read misses the append that ended just before."""
    transactions = []
    for value in range(1, 101):
        transactions += [appended(0, value), appended(1, value), appended(1, 0, list(range(1, value + 1)))]
        transactions += [appended(0, 0, list(range(1, value if value == 60 else value + 1)))]
    return history(path, transactions)


def test_a_stale_read_among_hundreds_becomes_two_or_three_operations(seamark: Seamark, tmp_path: Path) -> None:
    small = tmp_path / "small.edn"
    outcome = seamark("check", stale(tmp_path / "stale.edn"), "--shrink", small, "--engine", "local")
    assert outcome.code == 1
    assert "SHRUNK  Stale read (G-single-realtime): 3 of 400 operations" in " ".join(outcome.out.split(" "))
    assert f"seamark check {small}" in outcome.out
    assert small.read_text().count(":invoke") == 3
    again = seamark("check", small, "--engine", "local")
    assert again.code == 1
    assert "although T0 had finished before T1 began" in " ".join(again.out.split())


def test_a_late_row_stays_with_its_watermark_and_its_write(seamark: Seamark, tmp_path: Path) -> None:
    write_jsonl(late(is_late=True), tmp_path / "h.jsonl")
    (tmp_path / "watch.toml").write_text(PROMISES)
    command = ("--promises", "watch.toml", "--engine", "local")
    outcome = seamark("check", "h.jsonl", *command, "--shrink", "small.jsonl")
    assert outcome.code == 1
    assert "seamark check small.jsonl --promises watch.toml" in outcome.out
    text = (tmp_path / "small.jsonl").read_text()
    assert text.count('"type":"event"') == 3  # A session opens, too.
    assert text.count('"type":"invoke"') <= 1
    assert '"number":0' in text
    assert '"number":1' in text
    assert seamark("check", "small.jsonl", *command).code == 1
    assert "EDN has no stream events" in seamark("check", "h.jsonl", *command, "--shrink", "small.edn").line


def test_leaving_out_a_write_makes_no_finding(tmp_path: Path) -> None:
    """A judge that finds every read whose writer is missing: only that of the one true finding counts."""
    mops = [MicroOp("append", 0, 1), MicroOp("r", 0, [1]), MicroOp("r", 7, [99])]
    records: list[Evidence] = []
    for index, mop in enumerate(mops):
        records += [Invoke(index, index, index, 0, "txn", None, (mop,)), Complete(index, index, "ok", None, (mop,))]
    out, judged = tmp_path / "small.jsonl", list[list[MicroOp]]()

    def judge(path: Path) -> Report:
        kept = [mop for each in read_jsonl(path) if isinstance(each, Complete) for mop in each.mops or ()]
        judged.append(kept)
        written = {(mop.key, mop.value) for mop in kept if mop.f == "append"}
        bad = [
            n for n, mop in enumerate(kept) if isinstance(mop.value, list) and (mop.key, mop.value[0]) not in written
        ]
        found = tuple(garbage(number) for number in bad)
        return Report(verdict="invalid", exit_code=1, reason="", findings=found)

    small = shrunk(dict(enumerate(records)), garbage(2), out, judge, lambda _: None)
    assert (small.before, small.after) == ((3, 0), (1, 0))
    assert judged[-1] == [mops[2]]
    wrong = garbage(1)  # A finding that the history does not have: no part of it may show it.
    fine = Report(verdict="valid", exit_code=0, reason="")
    with pytest.raises(ScenarioError, match="does not show the finding"):
        shrunk(dict(enumerate(records)), wrong, tmp_path / "none.jsonl", lambda _: fine, lambda _: None)
    assert not (tmp_path / "none.jsonl").exists()


def garbage(op: int) -> FindingRow:
    return FindingRow(fingerprint="f", anomaly="garbage-read", checker="c", sentence="s", promise="P", ops=(op,))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("there.edn", "it already exists"),
        ("small.txt", "let the name end with .edn or .jsonl"),
        ("nowhere/small.edn", "cannot be written"),
    ],
)
def test_a_name_that_cannot_be_written_is_bad_usage_before_anything_is_judged(
    seamark: Seamark, tmp_path: Path, name: str, why: str
) -> None:
    (tmp_path / "there.edn").write_text("mine")
    outcome = seamark("check", stale(tmp_path / "stale.edn"), "--shrink", tmp_path / name, "--engine", "local")
    assert (outcome.code, outcome.out) == (64, "")
    assert why in outcome.line
    assert (tmp_path / "there.edn").read_text() == "mine"


def test_the_cycle_is_a_graph_in_dot(seamark: Seamark, tmp_path: Path) -> None:
    history = stale(tmp_path / "stale.edn")
    assert seamark("check", history, "--cycle", "c.dot", "--engine", "local").code == 1
    graph = (tmp_path / "c.dot").read_text()
    assert graph.startswith('digraph "G-single-realtime" {')
    assert graph.count(" -> ") == 2
    assert 'label="realtime"' in graph
    assert 'label="rw"' in graph
    assert seamark("check", history, "--cycle", "c.dot", "--engine", "local").code == 64
    assert seamark("check", history, "--cycle", "c.png", "--engine", "local").code == 64


def test_text_in_a_graph_stays_text() -> None:
    hostile = 'x"]; evil [label="'
    step = Step(source="T0", target="T1", relation="rw", sentence=hostile + "\\n\x1b")
    finding = msgspec.structs.replace(garbage(0), cycle=(step,))
    assert '[label="rw", tooltip="x\\"]; evil [label=\\"\\\\n\\\\x1b"];' in dot(finding)


def test_a_history_without_a_finding_leaves_no_file(seamark: Seamark, tmp_path: Path) -> None:
    fine = history(tmp_path / "fine.edn", [appended(0, 1), appended(0, 0, [1])])
    outcome = seamark("check", fine, "--shrink", tmp_path / "small.edn", "--engine", "local")
    assert outcome.code == 0
    assert "no promise is broken, so" in outcome.out
    assert not (tmp_path / "small.edn").exists()


def test_a_run_is_for_the_other_command(seamark: Seamark, run_copy: Path, tmp_path: Path) -> None:
    outcome = seamark("check", run_copy, "--shrink", tmp_path / "small.edn", "--engine", "local")
    assert (outcome.code, outcome.out) == (64, "")
    assert f"a run: seamark shrink {run_copy}" in outcome.line
