"""The advancer of one region: what it keeps of transactions, and how far its watermark may rise."""

from typing import cast

import pytest

from clusters.ticdc.rows.messages import Lock, Status
from clusters.ticdc.rows.versions import Change
from clusters.ticdc.site import Site
from clusters.ticdc.watermarks.advancer import Advancer
from harness.core.machine import Context, NodeId


class Silent:
    """A context that only counts goals."""

    def sometimes(self, goal: str) -> None:
        """Count nothing."""


def lock(key: int, start_ts: int, *, is_large: bool, bound: int = 0) -> Lock:
    return Lock(
        key=key, kind="put", primary=0, start_ts=start_ts, ttl_ms=100, min_commit_ts=bound, is_large=is_large,
        generation=1, elements=(key,),
    )  # fmt: skip


def advancer(*locks: Lock, bugs: frozenset[str] = frozenset()) -> Advancer:
    site = Site(NodeId("k1"), bugs, {})
    site.context = cast("Context", Silent())
    made = Advancer(site, locks)
    made.scanned()
    return made


def test_a_large_transaction_takes_one_entry_however_many_rows_it_has() -> None:
    """TIK-G21: memory follows the number of large transactions, not of their rows."""
    made = advancer(*(lock(key, 5, is_large=True, bound=8) for key in range(1000)))
    assert made.open_large() == [(5, 0)]
    assert len(made.hints()) == 1
    for key in range(1000):
        made.observe(Change("commit", key, 5, lock(key, 5, is_large=True), commit_ts=9))
        assert made.determined() == (() if key == 999 else ((5, 9),))
    assert (made.open_large(), made.hints(), made.least()) == ([], (), None)


@pytest.mark.parametrize(
    ("status", "least"),
    [
        (Status("ongoing", 20), 19),
        (Status("ongoing", 3), 7),  # A bound never falls.
        (Status("committed", 20), 19),  # That it is committed elsewhere frees nothing.
        (Status("rolled-back"), None),
        (Status("missing"), 7),
    ],
)
def test_what_is_known_of_a_large_transaction_bounds_the_watermark(status: Status, least: int | None) -> None:
    made = advancer(lock(1, 5, is_large=True, bound=8))
    made.learn(5, status)
    assert made.least() == least
    assert made.tick(100, made.least()) == (100 if least is None else least)


def test_a_normal_lock_holds_the_watermark_at_its_start_until_it_is_gone() -> None:
    made = advancer(lock(1, 5, is_large=False), lock(2, 5, is_large=False))
    assert made.tick(100, made.least()) == 5
    for key, reached in ((1, 5), (2, 101)):
        made.observe(Change("rollback", key, 5, lock(key, 5, is_large=False)))
        assert made.tick(101, made.least()) == reached


def test_before_all_stores_are_new_a_large_transaction_counts_like_any_other() -> None:
    site = Site(NodeId("k1"), frozenset(), {})
    site.has_new_rule = False
    made = Advancer(site, tuple(lock(key, 5, is_large=True, bound=8) for key in (1, 2)))
    made.scanned()
    for key, least in ((1, 5), (2, None)):
        made.observe(Change("commit", key, 5, lock(key, 5, is_large=True), commit_ts=9))
        assert made.least() == least
