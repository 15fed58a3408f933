"""S18: who acts in an epoch that another node owns; by hand, and beside a slow twin on random acts."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.streams.check import check
from checkers.streams.rules.logs.epoch_fork import FORK, Acts, forks
from checkers.words.checks import STREAMS
from harness.core.errors import HistoryError
from harness.core.record import Complete, Invoke, MicroOp, Outcome, Record, StreamEvent
from harness.core.verdict import Finding, Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.damage import flip_bit
from tests.worlds.streams.cases import contract


def history(*acts: str) -> list[Record]:
    """Operations by time: `x n1 3` wrote x on n1 in epoch 3, `- n1` only read; `x n1 3 info` got no answer."""
    result: list[Record] = []
    for index, act in enumerate(acts):
        key, node, *rest = act.split()
        outcome: Outcome = "info" if "info" in rest else "fail" if "fail" in rest else "ok"
        epoch = next((int(word) for word in rest if word.isdigit()), None)
        asked = MicroOp("r", "x") if key == "-" else MicroOp("append", key, index)
        mop = MicroOp("r", "x", []) if key == "-" else asked
        where = None if node == "?" else node
        result.append(Invoke(index, index, index, 0, "txn", None, (asked,)))
        result.append(Complete(index, index, outcome, None, (mop,), node=where, epoch=epoch, commit_ts=index))
    return result


def judged(folder: Path, *acts: str, rows: str = "", **changes: object) -> Judgement:
    """`rows` are key and partition, as in `xp1 yp2`."""
    events = [
        StreamEvent(50, "s1", 1, n, "row", span=word[1:], key=word[0], value=999, position=900 + n)
        for n, word in enumerate(rows.split())
    ]
    write_history([*history(*acts), *events], folder)
    return check(folder, Context(engine=LocalEngine(1), contract=contract(**({"owners": "nodes"} | changes))))


def of_forks(judgement: Judgement) -> list[Finding]:
    return [each for each in judgement.findings if each.anomaly == FORK]


def test_two_nodes_that_write_in_one_epoch_are_found(tmp_path: Path) -> None:
    result = judged(tmp_path, "x n1 3", "y n1 3", "x n2 3", "x n1 4", "y n3 3", "x n2 4")
    [finding] = of_forks(result)
    assert finding.sentence == (
        "n2 wrote in epoch 3 (operation 2), in which n1 had written before it (operation 0): an epoch has one owner."
    )
    assert (finding.anomaly, finding.checker, finding.count, finding.ops) == (FORK, STREAMS, 2, (0, 2))
    assert result.witnesses[FORK] >= 2


@pytest.mark.parametrize(
    "acts",
    [
        ("x n1 3", "x n2 4"),
        ("x n1 3", "x n2 4", "x n1 5"),  # It was elected again.
        ("x n1 3", "- n2 3"),  # A read is no act.
        ("x n1 3", "x n2 3 info"),
        ("x n1 3", "x n2 3 fail"),
        ("x n1 3", "x n2"),
        ("x n1 3", "x ? 3"),
        ("x n1 3", "x n2 4", "x n1 3"),  # What a fenced owner had written is a zombie's act, not a fork.
        (),
    ],
)
def test_one_owner_in_each_epoch_is_legal(acts: tuple[str, ...], tmp_path: Path) -> None:
    assert not of_forks(judged(tmp_path, *acts))


@pytest.mark.parametrize(
    ("acts", "witnesses"),
    [
        (("x n1 3", "x n2 4", "- n1"), 1),
        (("x n1 3", "x n2 4", "y n1 4 fail"), 1),
        (("x n1 3", "x n2 4", "y n1 4 info"), 0),  # It did not answer.
        (("x n1 3", "x n2 4"), 0),  # The old owner was never heard of again.
        (("x n1 3", "- n1", "x n2 4"), 0),
        (("x n1 3", "x n1 4", "- n1"), 0),  # The owner did not change.
        (("x n1 3", "- n1"), 0),
    ],
)
def test_a_witness_is_a_change_whose_old_owner_lived_on(acts: tuple[str, ...], witnesses: int, tmp_path: Path) -> None:
    assert judged(tmp_path, *acts).witnesses[FORK] == witnesses


def test_partitions_have_owners_of_their_own(tmp_path: Path) -> None:
    acts = ("x n1 3", "y n2 3")
    assert of_forks(judged(tmp_path / "global", *acts))

    def found(name: str, rows: str) -> bool:
        result = judged(tmp_path / name, *acts, rows=rows, is_position_global=False, wm_scope="partition")
        return bool(of_forks(result))

    assert found("one", "xp1 yp1")
    assert not found("apart", "xp1 yp2")
    assert not found("unknown", "xp1")
    assert not found("none", "")


def test_without_the_declaration_nothing_is_judged(tmp_path: Path) -> None:
    result = judged(tmp_path, "x n1 3", "x n2 3", owners="unknown")
    assert (of_forks(result), result.witnesses[FORK]) == ([], 0)


def test_a_flipped_bit_in_a_page_is_damage(tmp_path: Path) -> None:
    write_history(history("x n1 3", "x n2 4"), tmp_path)
    flip_bit(tmp_path / "ops.parquet", "node")
    with pytest.raises(HistoryError, match="cannot be read"):
        check(tmp_path, Context(engine=LocalEngine(1), contract=contract(owners="nodes")))


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(1, 4), st.integers(0, 2)), max_size=12), st.data())
def test_forks_are_those_that_a_plain_loop_finds(rows: list[tuple[int, int, int]], data: st.DataObject) -> None:
    log, epoch, node = (np.array(column, np.int64) for column in (zip(*rows, strict=True) if rows else ((), (), ())))
    last = np.array([data.draw(st.integers(-1, 20)) for _ in range(3)], np.int64)
    acts = Acts(op=np.arange(len(rows)) * 2, node=node, epoch=epoch, last=last)
    found = forks(acts, log)
    owner: dict[tuple[int, int], int] = {}
    result: dict[tuple[int, int], tuple[int, int]] = {}
    for place, (where, when, who) in enumerate(rows):
        if where >= 0 and rows[owner.setdefault((where, when), place)][2] != who:
            result.setdefault((where, when), (place, owner[where, when]))
    assert list(zip(found.act.tolist(), found.owner.tolist(), strict=True)) == sorted(result.values())
    epochs = sorted(owner)
    alive = sum(
        one[0] == two[0] and rows[owner[one]][2] != rows[owner[two]][2] and last[rows[owner[one]][2]] > 2 * owner[two]
        for one, two in pairwise(epochs)
    )
    assert found.witnesses == alive + len(result)
