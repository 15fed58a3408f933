"""A foreign history without transactions is taken for what its operations look like, and for nothing it is not."""

from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from harness.core.record import Json
from harness.judging.judge import judge
from harness.record.formats.edn.jepsen import records_of_maps
from harness.record.formats.load import Loaded
from harness.record.formats.parquet.parquet import write_history
from harness.record.formats.sight import sighted

Told = tuple[tuple[str, Json, Json], ...]  # f, what was asked, what was answered.
STEPS: Json = [["r", 1, 5], ["r", 2, None]]
LOOKS: list[tuple[str, Told]] = [
    ("bank", (("read", None, {"0": 5}), ("transfer", {"from": 0}, None))),
    ("bank", (("read", None, {"#map": [[0, 5]]}),)),
    ("counter", (("add", 1, 1), ("read", None, 1))),
    ("set-full", (("add", 1, 1), ("read", None, [1]))),
    ("set-full", (("add", 1, 1), ("read", None, {"#set": [1]}))),
    ("queue", (("enqueue", 1, 1), ("dequeue", None, 1))),
    ("total-queue", (("enqueue", 1, 1), ("drain", None, [1]))),
    ("unique-ids", (("generate", None, 1),)),
    ("long-fork", (("write", [["w", 1, 5]], [["w", 1, 5]]), ("read", STEPS, STEPS))),
    ("causal-reverse", (("write", 1, 1), ("read", None, [1]))),
    ("sequential", (("write", 1, 1), ("read", [1, None], [1, [None, "a"]]))),
    ("write-skew", (("insert", [1, [5, None]], [1, [5, None]]),)),
    ("monotonic", (("inc", None, 1), ("read", None, 1))),
]
NOTHING: list[Told] = [
    (("add", 1, 1),),  # A set or a counter: nobody reads it.
    (("add", 1, 1), ("read", None, 1), ("read", None, [1])),
    (("read", None, {"0": 5}), ("transfer", {"from": 0}, None), ("compensate", 1, 1)),
    (("send", 1, 1), ("poll", None, [1])),
    (("read", None, 4),),  # Nothing was added: neither a counter out of bounds nor an element of nobody.
    (("read", None, [4]),),
    (("txn", [["append", 1, 2]], [["append", 1, 2]]), ("read", None, [1])),
    (),
]


def history(folder: Path, evidence: Told) -> Path:
    maps: list[tuple[str, Json]] = []
    for f, asked, answered in evidence:
        maps.append(("", {"type": "invoke", "process": 0, "f": f, "value": asked}))
        maps.append(("", {"type": "ok", "process": 0, "f": f, "value": answered}))
    write_history(list(records_of_maps("test", maps, "")), folder / "history")
    return folder / "history"


@pytest.mark.parametrize(("name", "evidence"), LOOKS)
def test_a_workload_is_known_by_its_operations(tmp_path: Path, name: str, evidence: Told) -> None:
    (promise,) = sighted(history(tmp_path, evidence))
    assert (promise.check, promise.id) == (name, name.upper())


@pytest.mark.parametrize("evidence", NOTHING)
def test_what_looks_like_none_of_them_is_taken_for_none(tmp_path: Path, evidence: Told) -> None:
    assert sighted(history(tmp_path, evidence)) == ()


@pytest.mark.parametrize(("model", "promise"), [(None, "COUNTER"), ("serializable", "MODEL")])
def test_a_model_that_is_asked_for_comes_first(tmp_path: Path, model: str | None, promise: str) -> None:
    path = history(tmp_path, (("add", 1, 1), ("read", None, 5)))
    report = judge(Loaded(history=path, format="JSON", is_foreign=True), LocalEngine(1), model=model)
    assert [row.id for row in report.promises] == [promise]
    assert report.verdict == ("vacuous" if model else "invalid")
