"""A history that leaves nothing to judge gets a sentence with the cause; stream events without contract never pass."""

import re
from pathlib import Path

import pytest

import seamark
from tests.command.test_documented_formats import example


def operation(f: str, value: str = "nil", *, result: str | None = None, end: str = "ok") -> str:
    """An operation in EDN: its invocation and its completion."""
    invoke = f"{{:type :invoke, :process 0, :f :{f}, :value {value}}}"
    return f"{invoke}\n{{:type :{end}, :process 0, :f :{f}, :value {result or value}}}\n"


APPEND = operation("txn", "[[:append 1 1]]")
READ = operation("txn", "[[:r 1 nil]]", result="[[:r 1 [1]]]")
FAILED = operation("txn", "[[:r 1 nil]]", end="fail")
INC, WRITE, NIL = operation("inc", "1"), operation("write", "1"), operation("read")
ABSENT = 'if nil means that nothing is there, write nil = "absent" under [register] of a promise file'
CAUSES = [
    ("", None, "h.edn holds no completed operation: there is nothing to judge"),
    ("[]", None, "h.edn holds no completed operation: there is nothing to judge"),
    (FAILED, None, "no operation in h.edn succeeded: there is nothing to judge"),
    (
        INC,
        None,
        "h.edn fits no workload that a check knows: found inc; the nearest is monotonic (inc, read); known are ",
    ),
    (INC.replace(":inc", ":enqeue"), None, "found enqeue; the nearest is total-queue (enqueue, dequeue, drain)"),
    (APPEND, None, "no transaction in h.edn reads, and only reads can show an anomaly"),
    (WRITE, None, "no operation in h.edn reads, and only reads can show an anomaly"),
    (
        WRITE + NIL,
        None,
        f"every read in h.edn answered nil, which may mean anything: {ABSENT}",
    ),
    (
        WRITE + NIL,
        "serializable",
        "serializable is a model of transactions, and h.edn holds none (found read, write): leave out --model",
    ),
]


@pytest.mark.parametrize(("text", "model", "sentence"), CAUSES)
def test_each_cause_of_an_empty_judgement_has_its_own_sentence(
    tmp_path: Path, text: str, model: str | None, sentence: str
) -> None:
    (tmp_path / "h.edn").write_text(text)
    report = seamark.check(tmp_path / "h.edn", model=model)
    assert report.verdict == "vacuous"
    assert sentence in report.reason


def test_the_remedy_for_reads_of_nil_works(tmp_path: Path) -> None:
    (tmp_path / "h.edn").write_text(WRITE + NIL)
    (tmp_path / "p.toml").write_text('[register]\nmodel = "register"\nnil = "absent"\n')
    assert seamark.check(tmp_path / "h.edn", promises=tmp_path / "p.toml").verdict == "invalid"


def test_operations_beside_transactions_are_named_as_not_judged(tmp_path: Path) -> None:
    (tmp_path / "h.edn").write_text(APPEND + READ + INC)
    report = seamark.check(tmp_path / "h.edn")
    assert report.verdict == "valid"
    assert report.facts["notes"] == ["only transactions were judged: 1 other operation (inc) had no promise"]


def without_the_first_row() -> str:
    lines = example("json").splitlines(keepends=True)
    first = next(place for place, line in enumerate(lines) if '"kind": "row"' in line)
    return "".join(lines[:first] + lines[first + 1 :])


def test_stream_events_without_a_contract_are_no_pass(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text(without_the_first_row())
    report = seamark.check(tmp_path / "h.jsonl")
    assert (report.verdict, report.reason) == (
        "vacuous",
        "3 stream events were not judged: give --promises or --stream",
    )


def test_a_promise_file_without_a_contract_does_not_cover_stream_events(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text(without_the_first_row())
    (tmp_path / "p.toml").write_text('model = "serializable"\n')
    report = seamark.check(tmp_path / "h.jsonl", promises=tmp_path / "p.toml")
    assert report.verdict == "vacuous"
    assert report.reason == "3 stream events were not judged: the promise file needs a [stream] with its contract"


def test_a_finding_among_the_transactions_outranks_events_that_were_not_judged(tmp_path: Path) -> None:
    text = without_the_first_row()
    stale = re.sub(r'\["r", "x", \[1\]\]', '["r", "x", []]', text)
    assert stale != text
    (tmp_path / "h.jsonl").write_text(stale)
    assert seamark.check(tmp_path / "h.jsonl").verdict == "invalid"
