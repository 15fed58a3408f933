"""A row's value over flashbacks, and what a leader decides about one."""

from clusters.ticdc.rows.commands import prepare_flashback
from clusters.ticdc.rows.incarnations import brought_back, incarnation, name, named, restored, view
from clusters.ticdc.rows.messages import (
    CannotRestore,
    CommitKeys,
    Conflict,
    Lock,
    Locked,
    Prepared,
    PrepareFlashback,
    PutLocks,
    RollBackKeys,
)
from clusters.ticdc.rows.versions import Versions
from clusters.ticdc.shape import key_of


def lock(key: int, start_ts: int, *elements: int) -> Lock:
    return Lock(key, "put", key, start_ts, 100, start_ts + 1, is_large=False, generation=0, elements=elements)


def rows_with(*writes: tuple[int, int, tuple[int, ...]]) -> Versions:
    """Rows with these versions, as (key, commit timestamp, value)."""
    rows = Versions()
    for key, commit_ts, elements in writes:
        rows.apply(PutLocks((lock(key, commit_ts - 1, *elements),)))
        rows.apply(CommitKeys(commit_ts - 1, commit_ts, (key,)))
    return rows


def request(
    *keys: int, start_ts: int = 50, to_ts: int = 20, incarnation: int = 1, number: int = -1
) -> PrepareFlashback:
    return PrepareFlashback(start_ts, keys[0], keys, to_ts, incarnation, number=-1, ttl_ms=100)


def test_a_row_shows_each_of_its_incarnations() -> None:
    first = (*restored((1, 2, 3), (1,), -1, 20), 4)
    second = (*restored((*first, 5), first, -2, 30), 6)
    assert [incarnation(each) for each in ((1, 2), first, second)] == [0, 1, 2]
    assert [view(second, each) for each in range(4)] == [(1, 2, 3), (-1, 4, 5), (-2, 6), ()]
    assert [brought_back(second, each) for each in range(4)] == [None, (20, (1,)), (30, (-1, 4)), None]


def test_the_names_of_incarnations_are_read_back() -> None:
    assert [(name(7, each), key_of(name(7, each)), named(name(7, each))) for each in (0, 1, 12)] == [
        (7, 7, 0), ("7@1", 7, 1), ("7@12", 7, 12),
    ]  # fmt: skip
    assert [(key_of(text), named(text)) for text in ("a@1", "7@", "@7")] == [("a@1", 0), ("7@", 0), ("@7", 0)]


def test_a_flashback_locks_rows_with_their_earlier_values() -> None:
    decision = prepare_flashback(rows_with((1, 10, (1,)), (1, 30, (1, 2)), (2, 30, (3,))), request(1, 2))
    assert isinstance(decision.answer, Prepared)
    assert [brought_back(each, 1) for each in decision.answer.elements] == [(20, (1,)), (20, ())]
    assert [view(each, 0) for each in decision.answer.elements] == [(1, 2), (3,)]
    assert isinstance(decision.command, PutLocks)
    assert [(each.key, each.is_flashback) for each in decision.command.locks] == [(1, True), (2, True)]


def test_locks_of_others_are_reported_and_free_rows_are_locked_at_once() -> None:
    rows = rows_with((1, 10, (1,)))
    rows.apply(PutLocks((lock(2, 40, 9),)))
    decision = prepare_flashback(rows, request(1, 2))
    assert decision.answer == Locked((lock(2, 40, 9),))
    assert isinstance(decision.command, PutLocks)
    assert [each.key for each in decision.command.locks] == [1]
    rows.apply(decision.command)
    assert rows.flashback() == 50
    rows.apply(RollBackKeys(40, (2,), is_flashback=True))
    assert rows.is_flashed_back(2, 40)
    again = prepare_flashback(rows, request(1, 2))
    assert isinstance(again.answer, Prepared)
    assert isinstance(again.command, PutLocks)
    assert [each.key for each in again.command.locks] == [2]


def test_no_flashback_goes_below_an_earlier_one_or_begins_what_has_begun() -> None:
    rows = rows_with((1, 10, (1,)), (1, 30, (1, 2)))
    command = prepare_flashback(rows, request(1)).command
    assert command is not None
    rows.apply(command)
    rows.apply(CommitKeys(50, 55, (1,)))
    assert rows.flashback() == 0
    assert prepare_flashback(rows, request(1, start_ts=60, to_ts=57, incarnation=1)).answer == CannotRestore()
    assert prepare_flashback(rows, request(1, start_ts=60, to_ts=54, incarnation=2)).answer == CannotRestore()
    assert isinstance(prepare_flashback(rows, request(1, start_ts=60, to_ts=57, incarnation=2)).answer, Prepared)


def test_a_flashback_that_was_rolled_back_locks_nothing_any_more() -> None:
    rows = rows_with((1, 10, (1,)))
    rows.apply(RollBackKeys(50, (1,)))
    assert prepare_flashback(rows, request(1)) == (Conflict(is_rolled_back=True), None)
