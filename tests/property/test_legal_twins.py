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


def debezium(*commits: Commit, has_images: bool = True) -> list[Items]:
    """What Debezium for PostgreSQL sends of each transaction: its begin, rows, tombstones and end."""

    def place(number: int, ordinal: int) -> dict[str, Any]:
        at = 100 * number + ordinal
        return {"connector": "postgresql", "lsn": at, "sequence": f'["{100 * number}","{at}"]'}

    setup, state = Setup(is_once=False, has_images=has_images, has_snapshot=False), dict[int, int]()
    return [list(transaction(Draw(each.number).stream("t"), each, place, state, setup)) for each in commits]


def restarted(units: list[Items], cut: int, back: int) -> Items:
    """The task sent `cut` lines, restarted, and went on from line `back`."""
    lines = flat(units)
    return [*lines[:cut], *lines[back:]]


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


def flat(units: list[Items]) -> Items:
    return [item for unit in units for item in unit]


def without(items: Items, line: Item) -> Items:
    return [item for item in items if item is not line]


def twice(items: Items, *lines: Item) -> Items:
    """The lines, which follow one another, come again right behind the last of them."""
    at = next(place for place, item in enumerate(items) if item is lines[-1])
    return [*items[: at + 1], *lines, *items[at + 1 :]]


def with_31(items: Items) -> Items:
    """The row of the second transaction has another value."""
    result = list(items)
    [at] = [place for place, item in enumerate(items) if (item.thing, item.unit) == ("row", 2)]
    line = items[at].line
    result[at] = replace(items[at], line=line | {"value": line["value"] | {"after": {"id": 0, "v": 31}}})
    return result


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
            [*units[0], two[0], two[2]],
        ),
    }


def of_cockroachdb() -> dict[str, tuple[str, Items, Items]]:
    """The same of resolved timestamps."""
    marked = beside(COMMITS[:2], [(1, 2), (2, 3)])
    [early, late] = [item for item in marked if item.thing == "watermark"]
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
    }


STORIES: Final = of_debezium() | of_cockroachdb()


@pytest.mark.parametrize("name", STORIES)
def test_a_correct_system_sends_the_same_bytes(name: str, tmp_path: Path) -> None:
    kind, changed, legal = STORIES[name]
    assert [item.line for item in changed] == [item.line for item in legal]
    assert is_legal(kind, changed, is_once=False)
    assert verdict(kind, changed, tmp_path, is_once=False)[1] == set()
