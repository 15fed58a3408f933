"""In a history that never appends to a key, an array that is written to it is a value, and so is what reads show."""

from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.history.transactions import chunks
from checkers.transactions.check import check_sources
from harness.core.record import Complete, Invoke
from harness.core.verdict import Judgement
from harness.record.formats.load import load
from harness.record.formats.parquet.rows import records_of


def written(folder: Path, *steps: str) -> Path:
    """The history folder of those transactions, one after the other."""
    lines = [f"{{:type {kind}, :process 0, :f :txn, :value [{each}]}}" for each in steps for kind in (":invoke", ":ok")]
    (folder / "history.edn").write_text("\n".join(lines))
    return load(folder / "history.edn", folder).history


def judged(history: Path) -> Judgement:
    return check_sources(chunks(history), LocalEngine(1))


def test_a_read_of_a_written_array_shows_that_value(tmp_path: Path) -> None:
    history = written(tmp_path, '[:w :y [4 "a"]]', '[:r :y [4 "a"]] [:w :y [5 "b"]] [:r :y [5 "b"]]')
    judgement = judged(history)
    assert (judgement.findings, judgement.unknown) == ((), {})
    assert judgement.facts["sizes"]["registers-read"] == 2  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("steps", "anomaly"),
    [
        (('[:w :y [4 "a"]]', '[:w :y [5 "b"]] [:r :y [4 "a"]]'), "internal"),
        (("[:w :y [1]]", "[:w :y [2]]", "[:r :y [1]]"), "G-single-process"),
        (("[:w :y [[1] 2]]", "[:w :y []]", "[:r :y [[1] 2]]"), "G-single-process"),
    ],
)
def test_an_array_that_should_not_be_there_is_found(steps: tuple[str, ...], anomaly: str, tmp_path: Path) -> None:
    assert anomaly in {finding.anomaly for finding in judged(written(tmp_path, *steps)).findings}


def test_a_read_of_nothing_and_one_of_an_empty_array_that_was_written_differ(tmp_path: Path) -> None:
    history = written(tmp_path, "[:r :y nil]", "[:w :y []]", "[:r :y []]", "[:w :y [1]]")
    assert judged(history).findings == ()
    beside_a_list = written(tmp_path, "[:append :x 1] [:r :y nil]", "[:w :y [1]]", "[:r :y [1]]")
    assert (judged(beside_a_list).findings, judged(beside_a_list).unknown) == ((), {})


def test_a_list_stays_a_list_also_beside_registers_of_arrays(tmp_path: Path) -> None:
    history = written(tmp_path, "[:append :x 1] [:w :y [3]]", "[:append :x 2] [:r :y [3]]", "[:r :x [1 2]]")
    judgement = judged(history)
    assert (judgement.findings, judgement.unknown) == ((), {})
    assert judgement.facts["sizes"]["elements-read"] == 2  # type: ignore[index, call-overload]


def test_the_records_are_read_back_as_they_were(tmp_path: Path) -> None:
    steps = ('[:w :y [4 "a"]]', '[:r :y [4 "a"]]')
    records = [record for record in records_of(written(tmp_path, *steps)) if isinstance(record, Invoke | Complete)]
    assert [mop.value for record in records for mop in record.mops or ()] == [[4, "a"], [4, "a"], None, [4, "a"]]
