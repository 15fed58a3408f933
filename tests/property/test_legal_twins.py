"""Changes that no check can decide: a correct system sends the same bytes for another reason, which each test names.

They are the classes that `python -m tests.bench.public_streams` counts as permitted or undecidable.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from harness.core.draw import Draw
from tests.bench.public_streams import verdict
from tests.oracles.public_streams import is_legal
from tests.worlds.streams.public import Commit, Item, Items, Setup, event, operation, row, transaction

COMMITS: Final = (
    Commit(1, ((0, 100), (1, 101))),
    Commit(2, ((0, 200),)),
    Commit(3, ((1, None),)),
    Commit(4, ((0, None),)),
)
ELSEWHERE: Final = COMMITS[:1] + COMMITS[2:]  # The second transaction wrote another table.
OTHER: Final = (COMMITS[0], Commit(2, ((0, 31),)), *COMMITS[2:])


def debezium(*commits: Commit, has_images: bool = True, of: str = "postgresql") -> list[Items]:
    """What Debezium sends of each transaction: its begin, rows, tombstones and end."""

    def place(number: int, ordinal: int) -> dict[str, Any]:
        at = 100 * number + ordinal
        if of == "mysql":
            return {"connector": "mysql", "file": "bin.000009", "pos": at, "row": 0, "server_id": 7}
        return {"connector": "postgresql", "lsn": at, "sequence": f'["{100 * number}","{at}"]'}

    setup, state = Setup(is_once=False, has_images=has_images, has_snapshot=False), dict[int, int]()
    return [list(transaction(Draw(each.number).stream("t"), each, place, state, setup)) for each in commits]


def restarted(units: list[Items], cut: int, back: int) -> Items:
    """The task sent `cut` lines, restarted, and went on from line `back`."""
    lines = flat(units)
    return [*lines[:cut], *lines[back:]]


def polled(units: list[Items], order: str) -> Items:
    """So many lines came to a consumer of both topics in that order, r from the rows' and t from the transactions'."""
    topics = {"t": "r", "transaction": "t"}
    left = {name: iter([item for item in flat(units) if topics[item.line["topic"]] == name]) for name in "rt"}
    return [next(left[name]) for name in order]


def beside(commits: tuple[Commit, ...], marks: list[tuple[int, int]]) -> Items:
    """Operations and rows beside them; `marks` are the commits behind which a watermark comes, and its position."""
    items = [event("open", 0, position=0)]
    for commit in commits:
        rows = [row(commit, key, value, place, span="p0") for place, (key, value) in enumerate(commit.writes)]
        own = [
            event("watermark", 0, position=position, span="p0") for after, position in marks if after == commit.number
        ]
        items += [operation(commit), *rows, *own]
    return items


def told(story: str, span: str | None = "p0") -> Items:
    """Operations, rows and watermarks in the order of their names: 2, 2a for the first row of 2, w3 for a watermark."""
    items = [event("open", 0, position=0)]
    for name in story.split():
        if name[0] == "w":
            items.append(event("watermark", 0, position=int(name[1:]), **({} if span is None else {"span": span})))
            continue
        commit, place = COMMITS[int(name[0]) - 1], "abc".find(name[1:] or "-")
        items.append(operation(commit) if place < 0 else row(commit, *commit.writes[place], place, span=span))
    return items


def flat(units: list[Items]) -> Items:
    return [item for unit in units for item in unit]


def without(items: Items, line: Item) -> Items:
    return [item for item in items if item is not line]


def twice(items: Items, *lines: Item) -> Items:
    """The lines, which follow one another, come again right behind the last of them."""
    at = next(place for place, item in enumerate(items) if item is lines[-1])
    return [*items[: at + 1], *lines, *items[at + 1 :]]


def moved(items: Items, line: Item, behind: Item) -> Items:
    rest = without(items, line)
    at = next(place for place, item in enumerate(rest) if item is behind)
    return [*rest[: at + 1], line, *rest[at + 1 :]]


def with_31(items: Items) -> Items:
    """The row of the second transaction has another value."""
    result = list(items)
    [at] = [place for place, item in enumerate(items) if (item.thing, item.unit) == ("row", 2)]
    line = items[at].line
    result[at] = replace(items[at], line=line | {"value": line["value"] | {"after": {"id": 0, "v": 31}}})
    return result


def with_size_9(end: Item) -> Item:
    sizes = [{"data_collection": "s.t", "event_count": 9}]
    return replace(end, line=end.line | {"value": end.line["value"] | {"event_count": 9, "data_collections": sizes}})


def of_debezium() -> dict[str, tuple[str, Items, Items]]:
    """By the class of the change and what explains it: the kind of stream, the changed stream, and the legal one."""
    units = debezium(*COMMITS)
    every, blind = flat(units), debezium(*COMMITS, has_images=False)
    (_, two, three, four), place = units, {id(item): at for at, item in enumerate(every)}
    begin, first, tombstone, end = place[id(two[0])], place[id(two[1])], place[id(three[2])], place[id(three[3])]
    return {
        "row doubled: a restart behind it": ("postgresql", twice(every, two[1]), restarted(units, first + 1, first)),
        "transaction doubled: a restart behind it": (
            "postgresql",
            twice(every, *two),
            restarted(units, begin + len(two), begin),
        ),
        "tombstone doubled: a restart behind it": (
            "postgresql",
            twice(every, three[2]),
            restarted(units, tombstone + 1, tombstone),
        ),
        "end doubled: a restart behind it": ("postgresql", twice(every, three[3]), restarted(units, end + 1, end)),
        "row torn: that was written": ("postgresql", with_31(flat(blind)), flat(debezium(*OTHER, has_images=False))),
        "transaction lost: of another table": (
            "postgresql",
            flat([blind[0], *blind[2:]]),
            flat(debezium(*ELSEWHERE, has_images=False)),
        ),
        "tombstone lost: they were switched off": (
            "postgresql",
            without(every, four[2]),
            [*flat(units[:3]), *(item for item in four if item.thing != "tombstone")],
        ),
        "row lost: the topic was read up to here": (
            "postgresql",
            without(flat(units[:2]), two[1]),
            polled(units, "trrttt"),
        ),
    }


def of_topics() -> dict[str, tuple[str, Items, Items]]:
    """The same of what a consumer of both topics has read, which have no order between them."""
    units = debezium(*COMMITS)
    every, (_, two, three, _) = flat(units), units
    small = flat(debezium(*COMMITS[:2], of="mysql"))
    large = debezium(COMMITS[0], Commit(2, tuple((key, 200 + key) for key in range(9))), of="mysql")
    return {
        "transaction torn: the topic was read up to here": (
            "postgresql",
            without(flat(units[:1]), units[0][2]),
            polled(units, "trt"),
        ),
        "transaction lost: the topics were read up to here": (
            "postgresql",
            flat(units[:3]),
            polled(units, "trrttrttrrt"),
        ),
        "row moved: the topics were polled in another order": (
            "postgresql",
            moved(every[:7], two[1], two[2]),
            polled(units, "trrtttr"),
        ),
        "tombstone moved: the topics were polled in another order": (
            "postgresql",
            moved(flat(units[:3]), three[2], three[3]),
            polled(units, "trrttrttrtr"),
        ),
        "end moved: the topics were polled in another order": (
            "postgresql",
            moved(every[:7], two[2], two[0]),
            polled(units, "trrtttr"),
        ),
        "end lost: the topic was read up to here": ("postgresql", every[:6], polled(units, "trrttr")),
        "end torn: its other rows were not read yet": (
            "mysql",
            [*small[:-1], with_size_9(small[-1])],
            polled(large, "trrttrt"),
        ),
    }


def of_cockroachdb() -> dict[str, tuple[str, Items, Items]]:
    """The same of resolved timestamps."""
    marked = beside(COMMITS[:2], [(1, 2), (2, 3)])
    [early, late] = [item for item in marked if item.thing == "watermark"]
    again = told("1 1a 1b 2 2a 1b w9")
    every = told("1 1a 1b 2 2a 3 3a 4 4a w9")  # Behind the open: 1 is its item 1, and 1a item 2.
    return {
        "resolved timestamp lost: the next one covers it": (
            "cockroachdb",
            without(marked, early),
            beside(COMMITS[:2], [(2, 3)]),
        ),
        "resolved timestamp doubled: another range had no news": (
            "cockroachdb",
            twice(marked, late),
            beside(COMMITS[:2], [(1, 2), (2, 3), (2, 3)]),
        ),
        "resolved timestamp torn: so much was resolved": (
            "cockroachdb",
            [*without(marked, late), event("watermark", 0, position=5, span="p0")],
            beside(COMMITS[:2], [(1, 2), (2, 5)]),
        ),
        "row moved: ranges are sent one by one": (
            "cockroachdb",
            moved(every, every[3], every[5]),
            told("1 1a 2 2a 1b 3 3a 4 4a w9"),
        ),
        "tombstone moved: ranges are sent one by one": (
            "cockroachdb",
            moved(every, every[7], every[9]),
            told("1 1a 1b 2 2a 3 4 4a 3a w9"),
        ),
        "resolved timestamp moved: the next row came first": (
            "cockroachdb",
            moved(marked, early, marked[-2]),
            told("1 1a 1b 2 2a w2 w3"),
        ),
        "transaction torn: its row came later": (
            "cockroachdb",
            without(again, again[3]),
            told("1 1a 2 2a 1b w9"),
        ),
    }


def of_etcd() -> dict[str, tuple[str, Items, Items]]:
    """The same of a watch of etcd, which sends each event once."""
    whole = told("1 1a 1b w1 2 2a w2", span=None)
    return {
        "progress notification moved: it was sent later": (
            "etcd",
            moved(whole, whole[4], whole[6]),
            told("1 1a 1b 2 2a w1 w2", span=None),
        ),
        "row or tombstone moved: a revision's events have no order": (
            "etcd",
            moved(whole, whole[2], whole[3]),
            told("1 1b 1a w1 2 2a w2", span=None),
        ),
    }


STORIES: Final = of_debezium() | of_topics() | of_cockroachdb() | of_etcd()


@pytest.mark.parametrize("name", STORIES)
def test_a_correct_system_sends_the_same_bytes(name: str, tmp_path: Path) -> None:
    kind, changed, legal = STORIES[name]
    assert [item.line for item in changed] == [item.line for item in legal]
    assert is_legal(kind, changed, is_once=kind == "etcd")
    assert verdict(kind, changed, tmp_path, is_once=kind == "etcd")[1] == set()
