"""Operations come out of a history's files as they went in, parts of it included; every check is wired to them."""

from pathlib import Path
from random import Random

import pytest

from checkers.catalogue import CHECKS
from checkers.invariants.operations import Mop, collection, listed, operations, pairs, shown, token
from harness.core.columns import FAIL, INFO, NEVER, OK
from harness.core.errors import HistoryError
from harness.core.promises import Promise
from harness.core.record import Evidence, Json
from harness.core.verdict import Judgement
from harness.judging.checks import judgement_of
from harness.judging.generations import generations
from harness.record.formats.edn.jepsen import records_of_maps
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.contexts import context
from tests.worlds.epoch_histories import records


def history(folder: Path, *maps: dict[str, Json]) -> Path:
    records_: list[Evidence] = list(records_of_maps("test", ((str(n), each) for n, each in enumerate(maps)), ""))
    write_history(records_, folder / "history")
    return folder / "history"


def event(kind: str, f: str, value: Json, process: int = 0) -> dict[str, Json]:
    return {"type": kind, "f": f, "value": value, "process": process}


def test_what_was_asked_and_answered_is_there_with_its_end(tmp_path: Path) -> None:
    path = history(
        tmp_path,
        event("invoke", "add", {"a": 1}),
        event("invoke", "read", None, 1),
        event("ok", "read", [1, "x"], 1),
        event("fail", "add", {"a": 1}),
        event("invoke", "add", 7, 2),
    )
    first, second, third = operations(path)
    assert (first.outcome, first.after, first.argument, first.f) == (FAIL, 2, {"a": 1}, "add")
    assert (second.outcome, second.after, second.value, second.is_ok) == (OK, 2, [1, "x"], True)
    assert (third.outcome, third.after, third.argument, third.given) == (INFO, NEVER, 7, 7)
    # The second overlaps the first, and ended before the third began.
    assert (second.number, second.after, third.number) == (1, 2, 2)


def test_a_transaction_has_its_steps_with_keys_and_elements_by_name(tmp_path: Path) -> None:
    steps: Json = [["append", "x", "a"], ["r", "x", None], ["append", 2, 3]]
    done: Json = [["append", "x", "a"], ["r", "x", ["b", "a"]], ["append", 2, 3]]
    path = history(tmp_path, event("invoke", "txn", steps), event("ok", "txn", done), event("info", "txn", [], 4))
    first, second = operations(path)
    assert first.mops == (Mop('"x"', '"a"', None), Mop('"x"', None, ('"b"', '"a"')), Mop(2, 3, None))
    assert (second.mops, second.outcome) == ((), INFO)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = history(tmp_path, event("invoke", "add", 1))
    (path / "ops.parquet").write_bytes(b"nonsense")
    with pytest.raises(HistoryError, match=r"ops\.parquet"):
        operations(path)


def test_values_are_looked_up_by_their_json() -> None:
    values: list[Json] = [1, "1", 1.0, True, None, [1], {"b": 1, "a": 2}]
    assert len({token(each) for each in values}) == len(values)
    assert token({"b": 1, "a": 2}) == token({"a": 2, "b": 1})
    assert (shown(token("x")), shown(token(7)), shown(token([1]))) == ("x", "7", "[1]")
    assert len(shown(token("x" * 500))) < 70
    assert (listed([1, 2]), listed(range(6))) == ("1, 2", "0, 1, 2, 3 and 2 more")


def test_collections_and_maps_have_several_forms() -> None:
    assert (collection([1]), collection({"#set": [1]}), collection({"a": 1}), collection(None)) == (
        [1],
        [1],
        None,
        None,
    )
    assert pairs({"#map": [[0, 5], [1, 6]]}) == [(0, 5), (1, 6)]
    assert pairs({"0": 5}) == [("0", 5)]
    assert (pairs({"#set": [1]}), pairs([1])) == (None, None)


def judged(folder: Path, name: str) -> Judgement:
    promise = Promise(id="P", text="", source="", forbids=("lost-element",), check=name)
    check = next(each for each in CHECKS if each.name == name)
    with generations(folder, context(promise)) as known:
        return judgement_of(check, known)


def test_a_restart_that_voids_what_was_not_saved_loses_nothing_and_takes_nothing_back(tmp_path: Path) -> None:
    witnessed = 0
    for seed in range(6):
        write_history(records(Random(seed), restarts=2), tmp_path / "history")
        for name in ("set-full", "monotonic", "counter"):
            judgement = judged(tmp_path / "history", name)
            assert judgement.findings == (), (seed, name, judgement.findings[0].sentence)
            witnessed += sum(judgement.witnesses.values())
    assert witnessed > 100


def test_a_part_of_a_history_has_its_names(tmp_path: Path) -> None:
    steps: Json = [["append", "x", "17:-3"]]
    path = history(tmp_path, event("invoke", "txn", steps), event("ok", "txn", steps))
    (tmp_path / "part").mkdir()
    for name in ("ops.parquet", "mops.parquet"):
        (tmp_path / "part" / name).write_bytes((path / name).read_bytes())
    (whole,) = operations(path)
    assert whole.mops == (Mop('"x"', '"17:-3"', None),)
    assert operations(tmp_path / "part", path) == (whole,)
