"""Binlogs with one transaction for each epoch, indexes that name their places, and replicas that lack nothing."""

import os
import random
from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from clusters.ndb.checks import binlogs
from clusters.ndb.checks.binlogs import Entry, Indexed
from harness.core.record import Json
from harness.core.verdict import Judgement
from tests.oracles.binlogs import anomalies_of
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies

ROW: Json = [1, 1]


def judged(run: Run, folder: Path) -> Judgement:
    return binlogs.check(run.write(folder), Context(engine=ENGINE, bounds=BOUNDS))


def binlog(*epochs: int, server: int = 1) -> list[Json]:
    """The records of a binlog; a negative number is an incident up to that epoch."""
    return [
        ["epoch", each, server, [ROW]] if each > 0 else ["incident", -each, 0, [["restart", None]]] for each in epochs
    ]


def shown(log: list[Json], index: list[Json] | None = None, *, other: list[Json] | None = None) -> Run:
    run = Run()
    run.state(1000, "b1", "binlog", "b1", log)
    if index is not None:
        run.state(1000, "b1", "binlog-index", "b1", index)
    if other is not None:
        run.state(1000, "b2", "binlog", "b2", other)
    return run


@pytest.mark.parametrize(
    ("log", "other", "expected"),
    [
        (binlog(3, 4, 6), binlog(4, 6, server=2), []),
        (binlog(3, 4, 4), None, ["split-epoch"]),
        (binlog(4, 3), None, ["binlog-order"]),
        (binlog(3, 6), binlog(3, 4, 6), ["binlog-gap"]),
        # Legal: a gap with an incident, epochs before an injector began, and incidents without a loss.
        (binlog(3, -5, 6), binlog(3, 4, 6), []),
        (binlog(6), binlog(3, 4, 6), []),
        (binlog(3, -3, 4, -4), binlog(3, 4), []),
    ],
)
def test_a_binlog_has_each_epoch_once_in_order_and_marks_its_gaps(
    tmp_path: Path, log: list[Json], other: list[Json] | None, expected: list[str]
) -> None:
    judgement = judged(shown(log, other=other), tmp_path)
    assert anomalies(judgement) == expected
    assert judgement.witnesses["split-epoch"] >= len(
        [each for each in log if isinstance(each, list) and each[0] == "epoch"]
    )


def test_an_acknowledged_change_in_a_gap_of_all_binlogs_is_evidence(tmp_path: Path) -> None:
    run = shown(binlog(3, 6))
    run.complete(20, run.invoke(10, {1: 1}), {1: 1}, at=4)
    assert anomalies(judged(run, tmp_path)) == ["binlog-gap"]


def test_an_acknowledged_schema_change_alone_has_no_transaction(tmp_path: Path) -> None:
    run = shown(binlog(3, 6))
    run.complete(20, run.invoke(10, {"schema": 1}), {"schema": 1}, at=4)
    assert anomalies(judged(run, tmp_path)) == []


@pytest.mark.parametrize(
    ("log", "index", "expected"),
    [
        (binlog(3, 4), [[3, 0, 1, 1], [4, 1, 2, 1]], []),
        (binlog(3, 4), [[3, 1, 2, 1]], ["false-index"]),
        (binlog(3, 4), [[3, 0, 1, 2]], ["false-index"]),
        (binlog(3, 4), [[3, 0, 0, 1]], ["false-index"]),
        (binlog(3), [[3, 0, 1, 1], [4, 1, 2, 1]], ["false-index"]),
        (binlog(3, 4), [[4, 1, 2, 1]], ["false-index"]),
        # Legal: the last epochs before a crash lack.
        (binlog(3, 4), [[3, 0, 1, 1]], []),
        (binlog(3, 4, -5, 6), [[3, 0, 1, 1], [6, 3, 4, 1]], []),
    ],
)
def test_an_index_names_the_places_of_transactions(
    tmp_path: Path, log: list[Json], index: list[Json], expected: list[str]
) -> None:
    judgement = judged(shown(log, index), tmp_path)
    assert anomalies(judgement) == expected
    assert judgement.witnesses["false-index"] == len(index)


def at_rest(elements: list[Json], schema: list[Json], *, is_at_end: bool = False, log: list[Json] | None = None) -> Run:
    """A stream of two epochs and a schema change, and a replica at rest at the second."""
    run = shown(log or [])
    for position, element in ((3, 1), (4, 2)):
        run.event(10 * position, "b1", "row", position, key=7, value=element)
    run.complete(50, run.invoke(45, {"schema": 37}), {"schema": 37}, at=4)
    run.state(1000, "r1", "replica-state", "r1", [[["stream", 4]], [[7, elements]]])
    run.state(1000, "r1", "replica", "r1", [is_at_end, [[1, 4]], schema])
    return run


@pytest.mark.parametrize(
    ("elements", "schema", "expected"),
    [
        ([1, 2], [37], []),
        ([1], [37], ["behind"]),
        ([1, 2], [], ["lost-schema-change"]),
    ],
)
def test_at_rest_a_replica_lacks_nothing(
    tmp_path: Path, elements: list[Json], schema: list[Json], expected: list[str]
) -> None:
    judgement = judged(at_rest(elements, schema), tmp_path)
    assert anomalies(judgement) == expected
    assert judgement.witnesses["behind"] == judgement.witnesses["lost-schema-change"] == 1


@pytest.mark.parametrize(
    ("log", "expected"), [(binlog(3, -5), []), (binlog(-4, 5), ["needless-stop"]), (binlog(3), ["needless-stop"])]
)
def test_a_replica_stops_only_for_a_gap_beyond_its_position(
    tmp_path: Path, log: list[Json], expected: list[str]
) -> None:
    judgement = judged(at_rest([1], [], is_at_end=True, log=log), tmp_path)
    assert anomalies(judgement) == expected
    assert (judgement.witnesses["behind"], judgement.witnesses["needless-stop"]) == (0, 1)


def test_random_binlogs_are_judged_as_the_slow_oracle_judges_them() -> None:
    found = set()
    first = int(os.environ.get("SEAMARK_FUZZ_SEED", "0"))
    for seed in range(first, first + int(os.environ.get("SEAMARK_FUZZ_COUNT", "300"))):
        dice = random.Random(seed)
        log, epoch = [], 1
        for _ in range(dice.randrange(7)):
            epoch += dice.choice((0, 1, 1, 1, 1, 2, 2, 3, -1))
            log.append((dice.choice(("epoch", "epoch", "epoch", "incident", "ddl")), epoch, dice.randrange(1, 3)))
        index = [
            (number, at + (dice.random() < 0.1), at + 1 + (dice.random() < 0.1), count)
            for at, (kind, number, count) in enumerate(log)
            if kind == "epoch" and dice.random() < 0.8
        ]
        known = {number: "" for number in range(1, 12) if dice.random() < 0.3}
        entries = [Entry(kind, number, 1, ((1, 1),) * count) for kind, number, count in log]
        rows = [Indexed(*row) for row in index]
        transactions = [each for each in entries if each.kind == "epoch"]
        troubles = (
            *binlogs.order("b1", transactions),
            *binlogs.gaps("b1", binlogs.runs(entries), known),
            *binlogs.misplaced("b1", entries, rows),
        )
        expected = anomalies_of(log, index, [*known])
        assert {each.anomaly for each in troubles} == expected, f"seed {seed}"
        found |= expected
    assert found == {"split-epoch", "binlog-order", "binlog-gap", "false-index"}
