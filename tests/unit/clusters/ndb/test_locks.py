"""Row locks."""

from clusters.ndb.transactions.locks import LockTable


def table() -> LockTable[str]:
    return LockTable()


def test_readers_share_and_a_writer_waits_for_all_of_them() -> None:
    locks = table()
    assert locks.take(1, 10, "a", is_exclusive=False)
    assert locks.take(1, 11, "b", is_exclusive=False)
    assert not locks.take(1, 12, "c", is_exclusive=True)
    assert locks.release(1, 10) == []
    assert locks.release(1, 11) == ["c"]
    assert locks.release(1, 12) == []
    assert len(locks) == 0


def test_a_reader_does_not_pass_a_writer_that_waits() -> None:
    locks = table()
    locks.take(1, 10, "a", is_exclusive=False)
    assert not locks.take(1, 11, "b", is_exclusive=True)
    assert not locks.take(1, 12, "c", is_exclusive=False)
    assert not locks.take(1, 13, "d", is_exclusive=False)
    assert locks.release(1, 10) == ["b"]
    assert locks.release(1, 11) == ["c", "d"]


def test_what_is_held_is_granted_again() -> None:
    locks = table()
    assert locks.take(1, 10, "a", is_exclusive=True)
    assert locks.take(1, 10, "b", is_exclusive=False)
    assert locks.take(1, 10, "c", is_exclusive=True)
    locks.release(1, 10)
    assert len(locks) == 0


def test_the_only_reader_becomes_the_writer_though_others_wait() -> None:
    locks = table()
    locks.take(1, 10, "a", is_exclusive=False)
    assert not locks.take(1, 11, "b", is_exclusive=True)
    assert locks.take(1, 10, "upgrade", is_exclusive=True)
    assert locks.release(1, 10) == ["b"]


def test_an_upgrade_waits_for_other_readers_but_for_no_writer() -> None:
    locks = table()
    locks.take(1, 10, "a", is_exclusive=False)
    locks.take(1, 11, "b", is_exclusive=False)
    assert not locks.take(1, 12, "c", is_exclusive=True)
    assert not locks.take(1, 10, "upgrade", is_exclusive=True)
    assert locks.release(1, 11) == ["upgrade"]
    assert locks.release(1, 10) == ["c"]


def test_two_upgrades_wait_until_one_gives_up() -> None:
    locks = table()
    locks.take(1, 10, "a", is_exclusive=False)
    locks.take(1, 11, "b", is_exclusive=False)
    assert not locks.take(1, 10, "first", is_exclusive=True)
    assert not locks.take(1, 11, "second", is_exclusive=True)
    assert locks.cancel(1, 11) == []
    assert locks.release(1, 11) == ["first"]


def test_who_gives_up_waiting_lets_those_behind_go_on() -> None:
    locks = table()
    locks.take(1, 10, "a", is_exclusive=False)
    locks.take(1, 11, "b", is_exclusive=True)
    locks.take(1, 12, "c", is_exclusive=False)
    assert locks.cancel(1, 11) == ["c"]
    assert locks.keys() == (1,)
    locks.release(1, 10)
    locks.release(1, 12)
    assert locks.keys() == ()


def test_keys_are_locked_apart() -> None:
    locks = table()
    assert locks.take(1, 10, "a", is_exclusive=True)
    assert locks.take(2, 11, "b", is_exclusive=True)
    assert locks.take("1", 12, "c", is_exclusive=True)
    assert locks.release(3, 10) == []
    assert len(locks) == 3
