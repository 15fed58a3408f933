"""One pass over the files of a foreign stream: its events in columns, its positions, sessions and units."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from checkers.columns.images import IMAGES
from checkers.streams.rules.watermarks.torn_unit import CAME_AGAIN, LACKS_A_ROW
from harness.core.columns import BACKFILL, KINDS, NAMED, NEVER, OPEN, ROW, TOMBSTONE, Bools, Int64s
from harness.core.errors import HistoryError
from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.record.formats.jsonl import NESTING_MAX, may_be_long, may_exceed, storable
from harness.record.formats.parquet.bulk_names import BulkNames, ends_of, texts_of, without_ends
from harness.record.formats.parquet.operations import without_collector
from harness.record.formats.parquet.parquet import write_events
from harness.record.formats.streams.contents import CODES, UNIT, Contents, require_sense
from harness.record.formats.streams.events import Cells, Columns, Commit, Table, in_sequence, tables_of, with_sessions
from harness.record.formats.streams.line import Content, StreamFormat
from harness.record.formats.streams.lines import contents_of, problem_of
from harness.record.formats.streams.origins import lines_of, write_images, write_origins
from harness.record.formats.streams.positions import Key, Positions, keys_of
from harness.record.formats.streams.units import Units, holes, pairs_of, runs_of

_POSITIONED: Final = frozenset(("row", "backfill", "watermark", "open", "gap", "checkpoint"))
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")  # Names ascend, and in structs they already do.
_NONE: Final = type(None)


class Survey:
    """What one pass over the files finds. Raises HistoryError with the file, the line and the problem."""

    def __init__(self, paths: Sequence[Path], form: StreamFormat) -> None:
        self._paths, self._form = paths, form
        self._file = 0  # The number of the file that is read.
        self.positions = Positions()
        self.units = Units(is_settled=form.contract.tail == "settled")
        self.names = BulkNames()
        self._named_count = 0
        self.rows = self.keyless = self.spanless = 0
        self._cells = Cells()
        self._sessions = Table()  # Subscribers with their sessions.
        self._spans = Table()  # Partitions, and tables that may be taken for partitions.
        self._unit_names = Table()
        self._imaged: list[Int64s] = []  # The rows of events with before-images, and
        self._images: list[bytes] = []  # these images, as texts of names.
        self._tombstones: list[tuple[int, Json, str | None]] = []
        self._declared: set[int] = set()  # Sessions that declare their beginning.
        self.has_times = False
        self._highest: dict[tuple[int, str | None], Key] = {}  # The highest position of each log so far, and
        self._going_on: set[tuple[int, tuple[int, str | None]]] = set()  # the logs that were met in a file.
        self._sizes: dict[int, tuple[tuple[str, int], ...]] = {}  # By the numbers of the units' ends.
        with without_collector():
            self._read()
            self._columns = self._cells.columns()
            self._name()
            self._take_units()

    def _read(self) -> None:
        if self._form.begin is not None:
            self._form.begin()
        for number, path in enumerate(self._paths):
            self._file = number
            for contents in contents_of(path, self._form):
                try:
                    self._take(contents)
                except (ValueError, OverflowError):
                    self._take_singly(path, contents)

    def _take_singly(self, path: Path, contents: Contents) -> None:
        """Take the contents one by one, of which one has a problem. Raises HistoryError with its line."""
        for number in range(len(contents.numbers)):
            try:
                self._take(contents.one(number))
            except (ValueError, OverflowError) as error:
                raise HistoryError(f"{path}, {contents.place(number)}: {problem_of(error)}") from None

    def _take(self, contents: Contents) -> None:
        """Add these contents. Raises ValueError or OverflowError for a problem; they may be added again one by one."""
        require_sense(contents)
        kinds = contents.column("kind")
        kind = np.array(list(map(CODES.__getitem__, kinds)))
        who = self._sessions.places(contents.pairs("subscriber", "session"))
        cells = {
            "kind": kind,
            "session": who,
            "span": self._spans.places(contents.column("span")),
            "table": self._spans.places(contents.column("collection")),
            "key": self._named(_where(kind < TOMBSTONE, contents.column("key"))),
            "value": self._named(_where(kind < TOMBSTONE, contents.column("value"))),
            "position": self._placed(contents, who),
            "ordinal": contents.integers("ordinal"),
            "epoch": contents.integers("epoch"),
            "unit": self._unit_names.places(contents.column("unit")),
            "unit_rows": contents.integers("unit_rows"),
            "ns": contents.integers("time_ns"),
            "line": np.array(contents.numbers, np.int64),
            "table_ordinal": contents.integers("table_ordinal"),
            "is_first": np.array(contents.column("is_first"), np.int64),
            "file": np.full(len(kind), self._file),
        }
        befores = contents.fields.get("before", ())
        imaged = [row for row, each in enumerate(befores) if each is not None]
        images = _ENCODER.encode_lines([befores[row].image for row in imaged])
        # All problems of these contents were found above.
        begin = len(self._cells)
        self._cells.add(cells)
        self._images.append(images)
        self._imaged.append(begin + np.array(imaged, np.int64))
        self._count(contents, cells)
        for row in np.flatnonzero(kind == TOMBSTONE).tolist():
            self._tombstones.append((begin + row, contents.column("key")[row], contents.column("span")[row]))
        for row in np.flatnonzero(kind == UNIT).tolist():
            self._sizes[begin + row] = contents.column("sizes")[row]

    def _name(self) -> None:
        """Put the ids of keys and values in place of their numbers among all that need one; look up the images."""
        images = b"".join(self._images)
        ids, self._image_ids = self.names.ids_beside(images)
        self._images = [images]
        for name in ("key", "value"):
            column = self._columns[name]
            rows = np.flatnonzero((column >= NAMED) & (column != NEVER))
            column[rows] = ids[column[rows] - NAMED]

    def _take_units(self) -> None:
        """Note the units, once all is read."""
        columns, places, units = self._columns, self._spans.values(), self._unit_names.values()
        self._holes = holes(columns)
        self._tables: dict[str, set[str]] = {}  # By partition.
        for span, table in pairs_of(columns["span"], columns["table"]).tolist():
            if NEVER not in (span, table):
                self._tables.setdefault(places[span], set()).add(places[table])
        if (columns["kind"] >= UNIT).any():
            for run in runs_of(columns, units, places, self._sizes):
                self.units.take(run)
        else:
            self.units.numbers = {unit: place for place, unit in enumerate(units, 1)}
        del columns["table_ordinal"], columns["is_first"]

    def _count(self, contents: Contents, cells: Columns) -> None:
        kind = cells["kind"]
        is_row = (kind == ROW) | (kind == BACKFILL)
        self.rows += int(is_row.sum())
        self.spanless += int((is_row & (cells["span"] == NEVER)).sum())
        if "has_key" in contents.fields:
            self.keyless += int((is_row & ~np.array(contents.fields["has_key"])).sum())
        self.has_times |= bool(((kind < TOMBSTONE) & (cells["ns"] != NEVER)).any())
        self._declared.update(cells["session"][kind == OPEN].tolist())

    def _named(self, values: Sequence[Json]) -> Int64s:
        """For keys or values NAMED and their numbers among all that need names, their own ids, or NEVER for None."""
        kinds = {*map(type, values)}
        if int not in kinds and _NONE not in kinds:
            return self._numbered(values)
        is_own = [value is None or (type(value) is int and 0 <= value < NAMED) for value in values]
        ids = np.array(
            [value if own and value is not None else NEVER for value, own in zip(values, is_own, strict=True)]
        )
        ids[~np.array(is_own)] = self._numbered([value for value, own in zip(values, is_own, strict=True) if not own])
        return ids

    def _numbered(self, values: Sequence[Json]) -> Int64s:
        self.names.add(*_kept(values))
        begin, self._named_count = self._named_count, self._named_count + len(values)
        return np.arange(NAMED + begin, NAMED + self._named_count)

    def _placed(self, contents: Contents, who: Int64s) -> Int64s:
        """The places of positions among all; NEVER for contents without one."""
        kinds, values = contents.column("kind"), contents.column("position")
        rows: Sequence[int] = range(len(kinds))
        if None in values or not _POSITIONED.issuperset(kinds):
            rows = [row for row in rows if kinds[row] in _POSITIONED and values[row] is not None]
            values = [values[row] for row in rows]
        result = np.full(len(kinds), NEVER)
        if not rows:
            return result
        begin = len(self.positions)
        try:
            keys = self.positions.take_all(values, lambda number: contents.place(rows[number]))
        except ValueError as error:
            what = "watermark" if kinds[rows[0]] == "watermark" else "position"
            raise ValueError(str(error).replace("its position", f"its {what}", 1)) from None
        if len(self._paths) > 1 and not self._form.is_by_source:  # There, each topic and table has its order.
            spans = contents.column("span")
            for row, key in zip(rows, keys_of(keys), strict=True):
                self._follow((int(who[row]), spans[row]), key)
        result[rows] = np.arange(begin, begin + len(keys))
        return result

    def _follow(self, log: tuple[int, str | None], key: Key) -> None:
        """Raise ValueError if a log, that of a session and partition, goes back where it goes on in another file."""
        highest = self._highest.get(log, key)
        if (self._file, log) not in self._going_on and key < highest:
            raise ValueError(
                "its position is below that of an earlier file: give the files of one log in their order; lines of "
                "partitions need a field that names theirs, as partition under [fields] in a mapping file; if events "
                "came again, join the files into one"
            )
        self._going_on.add((self._file, log))
        self._highest[log] = max(highest, key)

    @property
    def images(self) -> int:
        """The number of rows with an image of what they replaced."""
        return len(self._image_ids)

    @property
    def lacks_keys(self) -> bool:
        """True if neither the order of the source nor the ends of units can be judged in a stream without keys."""
        is_without = self._form.is_by_source and 0 < self.rows == self.keyless
        return is_without and not self.positions.orders_units and not self.units.have_ends

    @property
    def has_tables_for_partitions(self) -> bool:
        """True if the lines name neither keys nor partitions: then each table is taken as one partition."""
        return self._form.is_by_source and self.keyless > 0 and self.spanless == self.rows

    @property
    def contract(self) -> StreamContract:
        """The contract of this file: of a stream with the source's positions, its order is as wide as lines show."""
        contract = self._form.contract
        if not self._form.is_by_source:
            return contract
        if self.positions.kind_is_of_changes:
            contract = msgspec.structs.replace(contract, identity="position+key", unit_rows="final")
        is_wide = self.has_tables_for_partitions or (self.rows and not self.spanless)
        if is_wide and self.positions.orders_units:
            contract = msgspec.structs.replace(contract, order_key="partition")
        return contract

    @without_collector()
    def write(self, history: Path, *, is_hashed: bool = True) -> None:
        """Write the events into a new folder, with their before-images and origins. Raises OSError.

        Without `is_hashed`, the history does not record its hash.
        """
        columns = self._columns
        if self.has_tables_for_partitions:
            columns["span"] = np.where(columns["span"] == NEVER, columns["table"], columns["span"])
        lowest = self._number_positions(columns)
        commits = list(self._commits(columns))
        self._size_units(columns)
        columns, row = in_sequence(columns, commits, self._are_kept(columns))
        self._number_units(columns, row)
        sessions, spans = self._sessions.values(), list(map(str, self._spans.values()))
        columns, row = with_sessions(columns, row, sessions, lowest)
        subscribers = [subscriber for subscriber, _ in sessions]
        events = tables_of(columns, self.names, subscribers, spans)
        write_events(events, self.names, history, is_hashed=is_hashed)
        if self.images:
            place = np.empty(len(self._cells), np.int64)
            place[row[row >= 0]] = np.flatnonzero(row >= 0)
            values = self._image_ids
            others = without_ends(texts_of(*self._images).filter(pa.array(values == NEVER)))
            write_images(history / IMAGES, place[np.concatenate(self._imaged)], values, others)
        write_origins(
            history,
            lines_of(columns, self._paths),
            self.positions.texts(),
            self.units.numbers,
            has_times=self.has_times,
        )

    def _number_positions(self, columns: Columns) -> Int64s:
        """Number the positions; returns the lowest one of each session, NEVER for those that declare a beginning."""
        place = columns["position"]
        is_placed = place != NEVER
        lowest = np.full(len(self._sessions.values()), NEVER)
        if is_placed.any():
            columns["position"][is_placed] = self.positions.numbers()[place[is_placed]]
            np.minimum.at(lowest, columns["session"][is_placed], columns["position"][is_placed])
        lowest[list(self._declared)] = NEVER
        return lowest

    def _are_kept(self, columns: Columns) -> Bools:
        """True for events; a tombstone gets its table, and is kept if its key and its partition's one table are known.

        Raises HistoryError if the contract declares tombstones, and some of them are not known so well.
        """
        result = columns["kind"] < len(KINDS)
        rows, keys = list[int](), list[Json]()
        for row, key, partition in self._tombstones:
            tables = self._tables.get(partition, set()) if partition else set()
            result[row] = is_known = len(tables) == 1 and key is not None
            if is_known:
                rows.append(row)
                keys.append([*tables, key])
            elif self._form.contract.tombstones == "each":
                raise HistoryError(
                    f"{self._paths[0]}: some tombstones do not show what they repeat, so [stream] tombstones = "
                    '"each" cannot be judged: write each line with its topic, partition and key, a topic for each table'
                )
        if rows:
            numbers = self._numbered(keys)
            columns["key"][rows] = self.names.ids()[numbers - NAMED]
        return result

    def _size_units(self, columns: Columns) -> None:
        """The number of rows of each unit that reports it, for rows that do not report it themselves."""
        if not self.units.are_announced:
            return
        sizes = [self.units.size(name) for name in self._unit_names.values()]
        known = np.array([*(NEVER if size is None else size for size in sizes), NEVER], np.int64)
        rows, unit = columns["unit_rows"], np.minimum(columns["unit"], len(sizes))
        columns["unit_rows"] = np.where(rows == NEVER, known[unit], rows)

    def _number_units(self, columns: Columns, row: Int64s) -> None:
        names, unit = self._unit_names.values(), columns["unit"]
        for place in unit[(row < 0) & (unit != NEVER)].tolist():
            self.units.number(names[place])
        numbers = [self.units.numbers.get(name, NEVER) for name in names]
        columns["unit"] = np.array([*numbers, NEVER], np.int64)[np.minimum(unit, len(names))]

    def _commits(self, columns: Columns) -> Iterator[Commit]:
        """The ends of units that are events: those among the rows, or behind all rows if topics are apart.

        Behind all rows also one for each unit that lacks a row, or that came again where it must not.
        """
        end = len(self._cells)
        if self.units.are_announced:
            yield from self._ends_of_topics(columns) if self.units.topics.are_apart else self._ends_among(columns)
        for row in self._holes:
            yield Commit(end, row, int(columns["unit"][row]), LACKS_A_ROW)
        if self._form.contract.delivery != "at-least-once":
            for row, unit in self.units.again:
                yield self._commit(end, row, unit, CAME_AGAIN)

    def _ends_among(self, columns: Columns) -> Iterator[Commit]:
        """The ends of units where they stand among rows, and those that never came."""
        kind, unit = columns["kind"], columns["unit"]
        named = np.flatnonzero(unit != NEVER)
        changes = named[np.diff(unit[named], prepend=-1) != 0]
        names, last = self._unit_names.values(), None
        ended, unfinished = set[Json](), set[Json]()
        for row in np.union1d(changes, np.flatnonzero(kind >= UNIT)).tolist():
            name = None if unit[row] == NEVER else names[unit[row]]
            if name is not None and name != last:
                if self.units.is_endless(last):
                    yield self._commit(row, row, last, 0)  # The end that never came.
                elif last not in ended and self.units.is_sent_again(last):
                    unfinished.add(last)  # A sender restarted inside of it, and first sends earlier units again.
                last = name
            if kind[row] != UNIT:
                continue
            ended.add(name)
            unfinished.discard(name)
            if not unfinished and self.units.counts_end(name):
                size = self.units.size(name)
                yield self._commit(row, row, name if size else None, size)
        if self.units.is_endless(last):
            yield self._commit(len(self._cells), len(self._cells) - 1, last, 0)

    def _ends_of_topics(self, columns: Columns) -> Iterator[Commit]:
        """The ends of units in the wrong places, and behind all rows all ends, as topics have no order among them."""
        topics, end, names = self.units.topics, len(self._cells), self._unit_names.values()
        kind, unit = columns["kind"], columns["unit"]
        among = (
            (row, Content("unit" if kind[row] == UNIT else "begun", unit=names[unit[row]]))
            for row in np.flatnonzero(kind >= UNIT).tolist()
        )
        for row, content in topics.in_disorder(among):
            yield self._commit(end, row, content.unit, content.unit_rows)
        for row, name in topics.ended():
            if size := self.units.size(name):
                yield self._commit(end, row, name, size)

    def _commit(self, before: int, row: int, unit: Json, rows: int | None) -> Commit:
        return Commit(before, row, self._unit_names.place(unit), NEVER if rows is None else rows)


def _where(is_chosen: Bools, values: Sequence[Json]) -> Sequence[Json]:
    """The chosen values; None for the others."""
    if is_chosen.all():
        return values
    return [value if chosen else None for value, chosen in zip(values, is_chosen, strict=True)]


def _kept(values: Sequence[Json]) -> tuple[bytes, Int64s]:
    """The texts of the values, as far as a history can hold them, and where each ends. Raises ValueError."""
    whole = _ENCODER.encode_lines(values)
    ends = ends_of(whole)
    longest = max(int(ends[0]), int((ends[1:] - ends[:-1]).max(initial=0))) if len(ends) else 0
    if longest <= 2 * NESTING_MAX:  # So they cannot be nested too deep.
        exceeds = may_be_long(whole)
    else:
        nested = whole.count(b"\n[") + whole.count(b"\n{") + whole.startswith((b"[", b"{"))
        exceeds = may_exceed(whole, max(0, nested - 1))
    if not exceeds:
        return whole, ends
    texts = whole.split(b"\n")[:-1]
    whole = _ENCODER.encode_lines([storable(msgspec.json.decode(text), text) for text in texts])
    return whole, ends_of(whole)
