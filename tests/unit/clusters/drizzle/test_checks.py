"""The checks that only Drizzle needs, each with what it must find, what it must not, and legal oddities.

Each case is a log of m1 with two transactions, changed in one place.
"""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from checkers.engine.protocol import Context
from clusters.drizzle.checks import agreement, contents, form, waiting
from harness.core.record import Complete, Fault, Invoke, MicroOp, Outcome, Probe, Record, State
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.run_cases import ENGINE, MS, anomalies


def rows(*changes: Any, table: str = "lists", number: int = 1, is_end: bool = True, version: int = 0) -> Any:
    return ["rows", table, number, is_end, version, 0, [list(change) for change in changes]]


def insert(key: int, element: Any) -> Any:
    return ["insert", key, element, None]


def piece(trx: int, number: int, *entries: Any, is_end: bool = True, start: int = 5) -> Any:
    return ["m1", trx, number, is_end, start, list(entries)]


class World:
    """What the servers show, and what clients did."""

    def __init__(self) -> None:
        first = [
            piece(1, 1, rows(insert(0, 1), insert(0, 2), is_end=False), is_end=False),
            piece(1, 2, rows(insert(0, 3), number=2)),
        ]
        second = [piece(2, 1, rows(insert(4, 4), table="private"), rows(["add", "ann", 7, "ann"], table="people"))]
        self.full: Any = [*first, *second]
        self.filtered: Any = deepcopy(first)
        self.heads: Any = [[0, 3], [3, 2], [5, 3]]
        self.table: Any = [[1, 1, "m1", 1, first], [2, 2, "m1", 2, second]]
        self.m2: Any = [[1, 9, "m1", 1, first], [2, 10, "m1", 2, second]]
        self.lists: Any = [[0, [1, 2, 3]], [4, [4]]]
        self.people: Any = [["ann", 7]]
        self.replica: Any = [deepcopy(self.lists), deepcopy(self.people), [], None]
        self.others: Any = [deepcopy(self.lists), deepcopy(self.people), [], None]
        self.skipped: Any = []
        self.outcomes: list[Outcome] = ["ok", "ok"]

    def records(self) -> list[Record]:
        records: list[Record] = []
        for index, (appends, begin) in enumerate((([(0, 1), (0, 2), (0, 3)], 10), ([(4, 4)], 30))):
            mops = tuple(MicroOp("append", key, element) for key, element in appends)
            f = "bulk" if index == 0 else "undone"
            records.append(Invoke(index, begin * MS, begin * MS, 0, f, None, mops))
            result = mops if self.outcomes[index] == "ok" else None
            records.append(Complete(index, (begin + 5) * MS, self.outcomes[index], None, result, node="m1"))
        states = {
            ("file-log", "m1 file"): [2, self.heads, self.full],
            ("file-log", "m1 filtered"): [2, [[0, 3], [3, 2]], self.filtered],
            ("file-log", "m2 file"): [2, [], []],
            ("file-log", "m2 filtered"): [2, [], []],
            ("table-log", "m1"): self.table,
            ("table-log", "m2"): self.m2,
            ("rows", "m1"): [self.lists, self.people, [], None],
            ("rows", "m2"): self.others,
            ("rows", "r1"): self.replica,
            ("rows", "r2"): self.others,
            ("skipped", "r1"): self.skipped,
        }
        records += [State(99 * MS, "m1", name, key, value) for (name, key), value in states.items()]
        return records


Change = Callable[[World], Any]


def judge(check: Callable[[Path, Context], Judgement], change: Change, folder: Path) -> list[str]:
    world = World()
    change(world)
    write_history(world.records(), folder)
    return anomalies(check(folder, Context(engine=ENGINE)))


def put(world: World, entry: Any) -> None:
    """Add an entry to the second transaction."""
    world.full[2][5].append(entry)


def fail(world: World, index: int, outcome: Outcome) -> None:
    world.outcomes[index] = outcome


def drop_last(world: World) -> None:
    """Take the second transaction out of the file log."""
    world.full.pop()
    world.heads.pop()


CONTENTS: dict[str, tuple[Change, list[str]]] = {
    "as it was": (lambda _: None, []),
    "an operation without an answer": (lambda world: fail(world, 1, "info"), []),
    "an acknowledged transaction is missing": (drop_last, ["unlogged-commit"]),
    "a refused transaction is there": (lambda world: fail(world, 1, "fail"), ["phantom-commit"]),
    "a row of a failed statement": (lambda world: put(world, rows(insert(0, "failed 4.0"))), ["failed-row"]),
    "a row taken back to a savepoint": (lambda world: put(world, rows(insert(0, "taken back 4.0"))), ["savepoint-row"]),
    "a row of a transaction rolled back": (
        lambda world: put(world, rows(insert(0, "abandoned 4.0"))),
        ["abandoned-row"],
    ),
    "a cancelled row": (
        lambda world: world.full[2][5].extend(
            [rows(insert(0, "failed 4.0"), is_end=False), ["rollback-statement", "", 1, True, 0, 0, []]]
        ),
        [],
    ),
    "a row twice": (lambda world: put(world, rows(insert(4, 4), table="private")), ["wrong-content"]),
    "an update without effect": (
        lambda world: put(world, rows(["update", "ann", 7, "ann"], table="people")),
        ["noise"],
    ),
    "an update with an effect": (lambda world: put(world, rows(["update", "ann", 8, "ann"], table="people")), []),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_contents(tmp_path: Path, case: str) -> None:
    change, expected = CONTENTS[case]
    assert judge(contents.check, change, tmp_path) == expected


def swap(world: World) -> None:
    """Give the file log the two transactions in the other order."""
    world.full = [world.full[2], *world.full[:2]]
    world.heads = [[0, 3], [3, 3], [6, 2]]


def swap_unanswered(world: World) -> None:
    swap(world)
    fail(world, 0, "info")


def oversize(world: World) -> None:
    """Put a third row into a piece."""
    put(world, rows(insert(4, "failed 4.0"), table="private"))
    world.heads[2] = [5, 4]


def leave_out(world: World) -> None:
    """Have r1 leave the second transaction out, and show so."""
    world.replica[:2] = [[[0, [1, 2, 3]]], []]
    world.skipped.append(["m1", 2])


def set_(place: Any, key: Any, value: Any) -> None:
    place[key] = value


FORM: dict[str, tuple[Change, list[str]]] = {
    "as it was": (lambda _: None, []),
    "an order against real time": (swap, ["log-order"]),
    "the same order, of which one has no answer": (swap_unanswered, []),
    "a commit id twice": (lambda world: set_(world.table[1], 0, 1), ["commit-id"]),
    "an offset inside a record": (lambda world: set_(world.heads, 1, [2, 2]), ["bad-record"]),
    "a head without its record": (lambda world: world.heads.append([8, 2]), ["bad-record"]),
    "a piece above the threshold": (
        oversize,
        ["oversize-piece"],
    ),
    "an id twice": (lambda world: set_(world.full[2], 1, 1), ["reused-id"]),
    "another start": (lambda world: set_(world.full[1], 4, 6), ["changed-context"]),
    "a version that the table does not have": (
        lambda world: set_(world.full[2][5][0], 4, 1),
        ["wrong-version"],
    ),
}


@pytest.mark.parametrize("case", FORM)
def test_form(tmp_path: Path, case: str) -> None:
    change, expected = FORM[case]
    assert judge(form.check, change, tmp_path) == expected


AGREEMENT: dict[str, tuple[Change, list[str]]] = {
    "as it was": (lambda _: None, []),
    "a row that no log has": (lambda world: world.lists[1][1].append(5), ["engine-unlike-log"]),
    "a transaction in one log alone": (drop_last, ["streams-differ"]),
    "a filtered log without a row": (lambda world: world.filtered[1][5].clear(), ["wrong-projection"]),
    "a filtered log with an empty last piece": (lambda world: world.filtered.append(piece(2, 1)), []),
    "a transaction twice from one origin": (
        lambda world: world.m2.append([3, 11, "m1", 2, [piece(2, 1)]]),
        ["loop"],
    ),
    "a replica without a row": (lambda world: world.replica[0][0][1].pop(), ["diverged"]),
    "a replica with a person of nobody": (lambda world: world.replica[1].append(["eve", 1]), ["diverged"]),
    "a replica with a person of its own": (lambda world: world.replica[1].append(["eve", "own"]), []),
    "a replica that left a transaction out": (
        leave_out,
        [],
    ),
    "a replica that stopped": (lambda world: set_(world.replica, 3, "no piece came"), ["stopped-replica"]),
}


@pytest.mark.parametrize("case", AGREEMENT)
def test_agreement(tmp_path: Path, case: str) -> None:
    change, expected = AGREEMENT[case]
    assert judge(agreement.check, change, tmp_path) == expected


@pytest.mark.parametrize(
    ("target", "value", "expected"),
    [("o1", 1400, ["waiting-commit"]), ("o1", 100, []), ("m1", 1400, []), ("m2", 1400, ["waiting-commit"])],
)
def test_commits_that_wait(tmp_path: Path, target: str, value: int, expected: list[str]) -> None:
    records: list[Record] = [
        Fault(1000 * MS, 0, "begin", "pause", (target,)),
        Probe(1500 * MS, "m1", "commit-ms", value),
    ]
    write_history(records, tmp_path)
    assert anomalies(waiting.check(tmp_path, Context(engine=ENGINE))) == expected


@pytest.mark.parametrize("check", [contents.check, form.check, agreement.check])
def test_servers_that_show_nothing_leave_all_open(tmp_path: Path, check: Any) -> None:
    write_history([Probe(1, "m1", "commit-ms", 1)], tmp_path)
    found = check(tmp_path, Context(engine=ENGINE))
    assert (found.findings, set(found.unknown.values())) == ((), {"the servers showed no logs at rest"})
