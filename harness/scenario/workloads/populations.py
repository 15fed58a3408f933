"""The kinds of transactions in a list-append load: the places that each reads and appends to.

A place is the rank of a key in use: 0 is the busiest. This module knows no keys and elements; it turns drawn numbers
into steps, so the same numbers always give the same transaction.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

DEPENDENT_PERCENT = 35  # Transactions that read one key and append to up to two others.
READ_ONLY_PERCENT = 15
SINGLE_READ_PERCENT = 25
WIDE_MIN, WIDE_MAX = 6, 8  # The number of keys of a wide transaction, if that many are in use.
ORDERLY = 10
HOT = 0  # The place that gets most of the traffic anyway.

Lock = Literal["committed", "locked"]


class Step(NamedTuple):
    """One step of a transaction: an append to that place, or a read of it."""

    place: int
    is_append: bool


class Drawn(NamedTuple):
    """The numbers drawn for one transaction, and the current keys of the places."""

    percent: int  # Below 100.
    length: int  # From 1 to the length of the longest transaction.
    longest: int
    places: Sequence[int]  # By Zipf's law.
    coins: Sequence[int]  # 0 or 1, one for each place.
    keys: Sequence[int]


class Population(NamedTuple):
    """A kind of transaction. `lock` is the lock mode of its reads; None for systems without a choice.

    "locked" locks each key that it reads: exclusively if it appends to it as well, else shared. `places` is the least
    number that it needs, whatever the longest transaction is. With `is_orderly` it takes its keys in ascending order,
    except for one transaction in ORDERLY, so that deadlocks occur without stopping everything until locks time out.
    """

    steps: Callable[[Drawn], list[Step]]
    lock: Lock | None = None
    places: int = 2
    is_orderly: bool = False


Mix = tuple[tuple[int, Population], ...]  # The percentage of each kind of transaction.


def mixed(drawn: Drawn) -> list[Step]:
    """Reads and appends in any order; many read one key and append to two others, some only read."""
    places = list(drawn.places)
    if drawn.percent < DEPENDENT_PERCENT:
        forms = (False, True, True)[: drawn.longest]
        places = different(places[: len(forms)], len(drawn.keys))
        return [Step(place, is_append) for place, is_append in zip(places, forms, strict=True)]
    is_read_only = drawn.percent < DEPENDENT_PERCENT + READ_ONLY_PERCENT
    return [
        Step(place, bool(coin) and not is_read_only)
        for place, coin in zip(places[: drawn.length], drawn.coins, strict=False)
    ]


def two_keys(drawn: Drawn) -> list[Step]:
    """Appends to two keys of different parity, without a read.

    Systems that distribute keys by number have such a pair on different nodes, so that transactions of different
    coordinators follow each other from node to node.
    """
    first, second = different(list(drawn.places[:2]), len(drawn.keys))
    parity = drawn.keys[first] % 2
    if drawn.keys[second] % 2 == parity:
        others = [place for place, key in enumerate(drawn.keys) if key % 2 != parity]
        second = others[drawn.percent % len(others)] if others else second
    return [Step(first, True), Step(second, True)]


def counter(_: Drawn) -> list[Step]:
    """A read of the busiest key and an append to it. As a counter, it loses an update unless locks exclude that."""
    return [Step(HOT, False), Step(HOT, True)]


def churn(drawn: Drawn) -> list[Step]:
    """Two or three appends to the busiest key, of which only the last may be visible outside."""
    return [Step(HOT, True)] * (2 + drawn.coins[0])


def single(drawn: Drawn) -> list[Step]:
    """One append, or one time in four one read: for systems without transactions."""
    return [Step(drawn.places[0], drawn.percent >= SINGLE_READ_PERCENT)]


def wide(drawn: Drawn) -> list[Step]:
    """Appends to so many keys that nearly every node group takes part."""
    count = WIDE_MIN + drawn.percent % (WIDE_MAX - WIDE_MIN + 1)
    places = different(list(drawn.places[:count]), len(drawn.keys))
    return [Step(place, True) for place in dict.fromkeys(places)]


LIST_APPEND: Mix = ((100, Population(mixed)),)
LIST_APPEND_LOCKED: Mix = ((100, Population(mixed, "locked")),)
TWO_KEYS: Mix = ((100, Population(two_keys)),)
COUNTER: Mix = ((100, Population(counter, "locked")),)
CHURN: Mix = ((100, Population(churn)),)
SINGLE_KEY: Mix = ((100, Population(single, places=1)),)
NDB_MIX: Mix = (
    (32, Population(mixed, "committed", is_orderly=True)),  # Explicit, since other transactions of the mixture lock.
    (28, Population(mixed, "locked", is_orderly=True)),
    (16, Population(two_keys, is_orderly=True)),
    (10, Population(counter, "locked")),
    (9, Population(churn)),
    (5, Population(wide, places=WIDE_MAX, is_orderly=True)),
)


def different(places: list[int], count: int) -> list[int]:
    """The places, which are below `count`, without repetitions: a repeated place becomes the next free one after it.

    If no place is free, the repetition stays.
    """
    chosen: list[int] = []
    for place in places:
        free = ((place + step) % count for step in range(count))
        chosen.append(next((each for each in free if each not in chosen), place))
    return chosen
