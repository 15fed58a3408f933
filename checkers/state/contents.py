"""The elements that states show, and what they show of each transaction. O(rows) in the rows that nodes dumped.

Nodes dump the same lists again and again, after each restart and on each replica: each text is decoded once.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.arrow import integers
from checkers.columns.files import read_columns, reading
from checkers.columns.index import codes
from checkers.columns.runs import distinct, expand, ordered
from checkers.engine.protocol import Context
from checkers.history.names import Dictionary, Names
from checkers.state.claims import Claim, Claims, Fate
from checkers.state.written import written_in
from harness.core.columns import NEVER, Bools, Int64s
from harness.core.promises import Bounds

Element = tuple[int, int]  # A key and an element of its list, as ids.
NO_GROUP: Final = -1


class Dumps(Struct, frozen=True, kw_only=True):
    """Lists that nodes showed, r of them, in order. `text` numbers the distinct lists.

    The elements of list t are elements[start[t]:start[t + 1]]. `number` is that of the restart after which it was
    shown.
    """

    node: Int64s
    nodes: tuple[str, ...]
    number: Int64s
    key: Int64s
    text: Int64s
    start: Int64s
    elements: Int64s

    def of_nodes(self, nodes: Collection[str]) -> "Dumps":
        """The lists that those nodes showed."""
        is_among = np.array([name in nodes for name in self.nodes], np.bool_)
        rows = np.flatnonzero(is_among[self.node])
        columns = {name: getattr(self, name)[rows] for name in ("node", "number", "key", "text")}
        return replace(self, **columns)

    def nodes_shown(self) -> set[str]:
        """The names of the nodes that showed something."""
        return {self.nodes[place] for place in distinct(np.sort(self.node)).tolist()}


def read_dumps(history: Path, names: Dictionary, kind: str) -> Dumps:
    """The states of that kind. Raises HistoryError if the file is damaged."""
    path = history / "states.parquet"
    columns = ["seq", "node", "txn", "key", "value"]
    if not path.is_file():
        return dumps_of([], [], [], [])
    with reading(path, ValueError, TypeError, msgspec.DecodeError):
        table = read_columns(path, columns, texts=["node", "value"], object=[kind]).sort_by("seq")
        (nodes, node), (texts, text) = (_encoded(table[name]) for name in ("node", "value"))
        contents = [names.identities(msgspec.json.decode(each)) for each in texts]
        return _dumps(nodes, node, integers(table["txn"], NEVER), integers(table["key"]), text, contents)


def _encoded(column: pa.ChunkedArray) -> tuple[list[str], Int64s]:
    """The distinct texts of a dictionary column, in order of appearance, and for each row the place of its own."""
    whole = column.unify_dictionaries().combine_chunks()
    used = whole.indices.dictionary_encode()  # Of a row group all texts come, also those of other rows.
    return whole.dictionary.take(used.dictionary).to_pylist(), integers(used.indices)


def dumps_of(
    nodes: Sequence[str], numbers: Sequence[int], keys: Sequence[int], contents: Sequence[Sequence[int]]
) -> Dumps:
    """Dumps made of lists, each with its node, restart number and key."""
    known = list(dict.fromkeys(nodes))
    places = {name: place for place, name in enumerate(known)}
    columns = (np.array([places[name] for name in nodes], np.int64), np.array(numbers, np.int64))
    return _dumps(known, *columns, np.array(keys, np.int64), np.arange(len(contents)), contents)


def _dumps(
    nodes: Sequence[str],
    node: Int64s,
    number: Int64s,
    key: Int64s,
    text: Int64s,
    contents: Sequence[Sequence[int]],
) -> Dumps:
    """Dumps with their nodes in order of name; `node` are places among `nodes`, which are distinct."""
    known = sorted(nodes)
    return Dumps(
        node=np.array([known.index(name) for name in nodes] or [0], np.int64)[node],
        nodes=tuple(known),
        number=number,
        key=key,
        text=text,
        start=np.cumsum([0, *map(len, contents)]),
        elements=np.array([element for content in contents for element in content], np.int64),
    )


class Groups:
    """Which nodes hold the same data, and the group of each key, as all dumps of a run show it."""

    def __init__(self, bounds: Bounds, dumps: Sequence[Dumps]) -> None:
        self._of_node = {node: number for number, group in enumerate(bounds.groups) for node in group}
        self.count = len(bounds.groups)
        keys, groups = (np.concatenate(each) for each in zip(*((d.key, self.of_nodes(d)) for d in dumps), strict=True))
        self._keys, first = np.unique(keys, return_index=True)
        self._groups = np.append(groups[first], NO_GROUP)

    def of_nodes(self, dumps: Dumps) -> Int64s:
        """For each list the group of its node; 0 if no groups are declared."""
        return np.array([self._of_node.get(node, 0) for node in dumps.nodes] or [0], np.int64)[dumps.node]

    def of_keys(self, key: Int64s) -> Int64s:
        """The group of each key; NO_GROUP if no dump shows the key."""
        place = np.searchsorted(self._keys, key)
        is_known = np.append(self._keys, NEVER)[place] == key
        return self._groups[np.where(is_known, place, len(self._keys))]


class Shown(Struct, frozen=True, kw_only=True):
    """What the nodes of a run showed after restarts (`restored`) and at the end (`rest`), and what they had to show."""

    restored: Dumps
    rest: Dumps
    groups: Groups
    claims: Claims


def shown(history: Path, context: Context) -> Shown:
    """What the nodes of that history showed: read once for all checks. Raises HistoryError if a file is damaged."""
    return context.facts.of((history, "shown by nodes"), partial(_shown, history, context))


def _shown(history: Path, context: Context) -> Shown:
    names = Dictionary(history)
    restored, rest = (read_dumps(history, names, kind) for kind in ("restored", "row"))
    groups = Groups(context.bounds, (restored, rest))
    claims = Claims(history, context.bounds, written_in(history, context.facts))
    return Shown(restored=restored, rest=rest, groups=groups, claims=claims)


class Contents:
    """All lists of some dumps, compared with the transactions of the run.

    A state is the lists of some rows, merged over the nodes. It knows a key if a node of the key's group showed any
    list. A key that no dump of the run shows has no known group: it is known only if every group showed something. If
    nodes did not show all that they hold (`is_partial`), only the keys that appear are known; likewise if no groups are
    declared, as a node that showed nothing may be the only one with a key. An element that is there shows an operation
    only if this is its sole writer (`Claims.is_sole`); one that is not there is missing for all its writers.
    """

    def __init__(self, dumps: Dumps, groups: Groups, claims: Claims, *, is_partial: bool = False) -> None:
        self.dumps, self.claims, self.is_partial = dumps, claims, is_partial or not groups.count
        written = claims.written
        self._group, self._group_count = groups.of_nodes(dumps), groups.count
        self.key_group = groups.of_keys(written.key)
        self._by_number, self._numbers = ordered(dumps.number)
        self.list_of_row = codes(dumps.key, dumps.text)
        first = np.unique(self.list_of_row, return_index=True)[1]
        length = np.diff(dumps.start)[dumps.text[first]]
        self._key = np.repeat(dumps.key[first], length)
        self._element = dumps.elements[expand(dumps.start[dumps.text[first]], length)]
        self._begin = np.cumsum(length) - length
        self._length = length
        # One numbering for the elements of all lists and of all transactions.
        both = codes(np.append(self._key, written.key), np.append(self._element, written.value))
        self._shown, self._written = both[: len(self._key)], both[len(self._key) :]
        self._count = int(both.max(initial=-1)) + 1
        self._is_strange = np.bincount(self._written, minlength=self._count)[self._shown] == 0
        self._doubled = self._doubled_elements()

    def state(self, rows: Int64s, number: int) -> "Sights":
        """The part of each transaction that those rows, ascending, show as the state after `number` restarts."""
        dumps, claims = self.dumps, self.claims
        at = self._places(distinct(np.sort(self.list_of_row[rows])))
        is_there = np.zeros(self._count, np.bool_)
        is_there[self._shown[at]] = True
        is_present = is_there[self._written]
        if self.is_partial:
            is_known = np.isin(claims.written.key, dumps.key[rows])
        else:
            is_shown = np.zeros(self._group_count + 1, np.bool_)
            is_shown[self._group[rows]] = True
            is_shown[NO_GROUP] = is_shown[:-1].all()
            is_known = is_shown[self.key_group]
        return Sights(claims, number, is_present & claims.is_sole, ~is_present & is_known)

    def rows_after(self, number: int) -> Int64s:
        """The rows that nodes showed after restart `number`, in order."""
        begin, end = np.searchsorted(self._numbers, (number, number + 1))
        return self._by_number[begin:end]

    def strangers(self, rows: Int64s) -> list[Element]:
        """The elements of those rows that no operation of the run wrote, by key, then in the order of the rows."""
        lists = self.list_of_row[rows]
        lists = lists[np.sort(np.unique(lists, return_index=True)[1])]
        at = self._places(lists)
        at = at[self._is_strange[at]]
        at = at[np.argsort(self._key[at], kind="stable")]
        return list(dict.fromkeys(zip(self._key[at].tolist(), self._element[at].tolist(), strict=True)))

    def twice(self, rows: Int64s) -> Iterator[tuple[str, Element]]:
        """For each of those rows whose list has an element twice: the node, and the first such element."""
        for row in rows[np.isin(self.dumps.text[rows], list(self._doubled))].tolist():
            element = self._doubled[int(self.dumps.text[row])]
            yield self.dumps.nodes[int(self.dumps.node[row])], (int(self.dumps.key[row]), element)

    def _places(self, lists: Int64s) -> Int64s:
        return expand(self._begin[lists], self._length[lists])

    def _doubled_elements(self) -> dict[int, int]:
        """For each list that repeats an element, the first such element."""
        start, elements = self.dumps.start, self.dumps.elements
        text = np.repeat(np.arange(len(start) - 1), np.diff(start))
        what = codes(text, elements)
        again = np.flatnonzero(np.bincount(what, minlength=1)[what] > 1)[::-1]
        return dict(zip(text[again].tolist(), elements[again].tolist(), strict=True))


class Sight(Struct, frozen=True, kw_only=True):
    """The elements of a transaction that a state shows and lacks.

    `absent` has only elements whose keys the state knows.
    """

    row: int
    claim: Claim
    fate: Fate
    present: tuple[Element, ...]
    absent: tuple[Element, ...]


class Sights:
    """How the state after `number` restarts shows each transaction (n,) and each of their elements (m,)."""

    def __init__(self, claims: Claims, number: int, is_present: Bools, is_absent: Bools) -> None:
        self._claims, self._is_present, self._is_absent = claims, is_present, is_absent
        count = len(claims.size)
        self.fate = claims.fates(number)
        self.present = np.bincount(claims.written.owner[is_present], minlength=count)
        self.absent = np.bincount(claims.written.owner[is_absent], minlength=count)
        self.is_whole: Bools = self.present + self.absent == claims.size  # The state knows the keys of all elements.

    def without(self, number: int, is_left_out: Bools) -> "Sights":
        """The same sights, except that those elements (m,) do not count as absent."""
        return Sights(self._claims, number, self._is_present, self._is_absent & ~is_left_out)

    def striking(self, is_meant: Bools) -> Iterator[Sight]:
        """Of the flagged transactions those of which the state shows too little, too much, or only a part."""
        is_void = (self.fate == Fate.VOID) | (self.fate == Fate.FAILED)
        is_wrong = np.where(is_void, self.present > 0, self.absent > 0) & (self.fate != Fate.UNCLEAR)
        is_wrong |= (self.present > 0) & (self.absent > 0)
        for row in np.flatnonzero(is_meant & is_wrong).tolist():
            yield Sight(
                row=row,
                claim=self._claims.claim(row),
                fate=Fate(int(self.fate[row])),
                present=self._elements(row, self._is_present),
                absent=self._elements(row, self._is_absent),
            )

    def _elements(self, row: int, is_meant: Bools) -> tuple[Element, ...]:
        written = self._claims.written
        at = np.arange(int(written.start[row]), int(written.start[row + 1]))
        at = at[is_meant[at]]
        return tuple(zip(written.key[at].tolist(), written.value[at].tolist(), strict=True))


def is_fractured(sight: Sight) -> bool:
    """True if a part of the transaction is present and another absent, whatever its fate."""
    return bool(sight.present) and bool(sight.absent)


def wrong(sight: Sight) -> tuple[Element, ...]:
    """The elements that the state wrongly has or lacks. They are not reported again for later states."""
    match sight.fate:
        case Fate.KEPT:
            return sight.absent
        case Fate.UNCLEAR:
            return sight.absent if is_fractured(sight) else ()
        case Fate.VOID | Fate.FAILED:
            return sight.present


def named(elements: Sequence[Element], name: Names) -> str:
    """A list of elements for a sentence, followed by "is" or "are"."""
    listed = " and ".join(name.pair(key, element) for key, element in elements)
    return f"{listed} {'is' if len(elements) == 1 else 'are'}"
