"""Histories on which verdicts once differed from the definitions of the models, from the file to the verdict.

Other such cases are beside what decides them: earlier lives (`tests/unit/clusters/ndb/test_earlier_lives.py`), arrays
and completions alone (`tests/unit/record/formats`), failed operations and initial values
(`tests/unit/checkers/linearizability/test_check.py`), and logs of two consumers
(`tests/unit/checkers/streams/test_definitions.py`).
"""

import json
from pathlib import Path

import pytest

from seamark import check

OWN, FUTURE = "[:w :x 1] [:r :x nil]", "[:r :y nil] [:r :y 3] [:w :y 3]"
WEAK = ("read-committed", "monotonic-atomic-view", "axiomatic-read-committed")


@pytest.mark.parametrize("model", WEAK)
@pytest.mark.parametrize(("steps", "anomaly"), [(OWN, "missed-own-write"), (FUTURE, "future-read")])
def test_a_transaction_that_contradicts_itself_breaks_weak_models(
    steps: str, anomaly: str, model: str, tmp_path: Path
) -> None:
    (tmp_path / "h.edn").write_text(f"{{:type :ok, :process 0, :f :txn, :value [{steps}]}}")
    assert {each.anomaly for each in check(tmp_path / "h.edn", model=model).findings} == {anomaly}


def test_integers_that_are_only_read_are_no_counter(tmp_path: Path) -> None:
    (tmp_path / "h.edn").write_text("{:type :ok, :process 0, :f :read, :value 3}\n{:type :ok, :f :read, :value 5}")
    report = check(tmp_path / "h.edn")
    assert (report.verdict, report.findings) == ("vacuous", ())


def test_two_values_at_one_lsn_diverge(tmp_path: Path) -> None:
    source = {"connector": "postgresql", "lsn": 7, "db": "d", "schema": "s", "table": "t"}
    changes = [{"after": {"id": 1, "v": value}, "source": source, "op": "u"} for value in (2, 9)]
    lines = [json.dumps({"key": {"id": 1}, "value": change}) for change in changes]
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    assert [each.anomaly for each in check(tmp_path / "s.jsonl", stream="debezium").findings] == ["divergent-duplicate"]
