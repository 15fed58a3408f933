"""Converts a file with a foreign stream to a history of its events, with the promises for such a stream.

The file is read twice. The first pass collects all positions, sessions and units; then each gets its number. A session
that does not report its start is assumed to start just before its lowest position: an event first delivered after a
higher watermark is late, wherever the session really started.
"""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from checkers.columns.images import IMAGES
from checkers.lineage import order, space, units
from checkers.lineage.check import ANOMALIES as LINEAGE_ANOMALIES
from checkers.lineage.check import CHECKER as LINEAGE
from checkers.streams.catalogue import RULES, names_that_need
from checkers.streams.findings import CHECKER
from checkers.streams.rule import Need
from checkers.streams.rules.watermarks.torn_unit import CAME_AGAIN, LACKS_A_ROW
from harness.core.errors import HistoryError
from harness.core.promises import Naming, Promise, StreamContract
from harness.core.record import Footer, Json, Record, StreamEvent
from harness.record.formats.load import Loaded, require_file
from harness.record.formats.parquet.parquet import write_history
from harness.record.formats.promise_file import Promised
from harness.record.formats.streams.images import ImageWriter
from harness.record.formats.streams.line import Content, StreamFormat
from harness.record.formats.streams.lines import first_lines, lines_of
from harness.record.formats.streams.mappings.known import hint
from harness.record.formats.streams.origins import write_origins
from harness.record.formats.streams.positions import Key, Positions
from harness.record.formats.streams.sources import NOUNS
from harness.record.formats.streams.units import Units
from harness.record.store import HISTORY

NEED_OPENS: Final = names_that_need(Need.OPENS)
NEED_IMAGES: Final = names_that_need(Need.IMAGES)
NEED_SOURCE: Final = names_that_need(Need.SOURCE)
_EVENTS: Final = ("row", "backfill", "watermark", "open", "gap", "checkpoint")
UNIT_MAX: Final = 10_000_000  # The most rows of a unit: rows that it announces and lacks are tracked in memory.
_INT_MAX: Final = (1 << 63) - 1


def load_stream(path: Path, into: Path, form: StreamFormat, more: Sequence[Path] = ()) -> tuple[Loaded, Promised]:
    """The stream in that file as a history inside `into`, and its promises. It goes on in the files `more`.

    Raises HistoryError with the file, the line and the problem.
    """
    for each in (path, *more):
        require_file(each)
    try:
        survey = Survey((path, *more), form)
    except HistoryError as error:
        advice = hint(first_lines(path), form.name)
        raise HistoryError(f"{error}; {advice}" if advice else str(error)) from None
    if survey.lacks_keys:
        raise HistoryError(
            f"{path}: its rows have no key, and nothing else that could be judged: write each line with the message's "
            "key and value, or name the key's columns with --key"
        )
    if form.contract.positions == "dense" and survey.positions.are_ranks:
        raise HistoryError(f'{path}: its positions are no integers, so [stream] positions = "dense" means nothing')
    try:
        into.mkdir(parents=True, exist_ok=True)
        with ImageWriter(into / IMAGES) as images:
            write_history(survey.records(images), into / HISTORY)
        if survey.images:
            (into / IMAGES).rename(into / HISTORY / IMAGES)
    except OSError as error:
        raise HistoryError(f"{into}: cannot be written ({error.strerror}); make room, or use another folder") from None
    texts, units = survey.positions.texts(), survey.units.numbers
    write_origins(into / HISTORY, survey.places(), texts, units, has_times=survey.has_times)
    loaded = Loaded(history=into / HISTORY, format=form.name, is_foreign=True, notes=tuple(_notes(form, survey)))
    naming = Naming(position=NOUNS.get(survey.positions.kind or "")) if form.is_by_source else Naming()
    return loaded, Promised(promises=tuple(_promises(form, survey)), stream=survey.contract, naming=naming)


def _promises(form: StreamFormat, survey: "Survey") -> Iterator[Promise]:
    """One promise for each rule; rules that need data the file lacks are bound to no check."""
    for rule in sorted(RULES.values(), key=lambda rule: rule.id):
        text, check = rule.anomaly.meaning, "source"
        if Need.SOURCE in rule.needs:
            text = f"{text} Cannot be judged without the operations of the source."
        elif Need.OPENS in rule.needs and not form.has_opens:
            text = f"{text} Cannot be judged where sessions do not declare their start."
        elif Need.IMAGES in rule.needs and not survey.images:
            text = f"{text} Cannot be judged where rows have no before-images."
        elif Need.ALL in rule.needs and form.contract.consumers == "group":
            text = f"{text} Cannot be judged where subscribers share the events."
        else:
            check = CHECKER
        yield Promise(id=rule.id, text=text, source=form.name, forbids=(rule.name,), is_purpose=False, check=check)
    of_logs = [*space.ANOMALIES, *order.ANOMALIES] if form.has_lineage else []
    of_logs += {"mixed": [], "together": [units.SPLIT], "one-order": [units.SPLIT, units.ORDER]}[
        form.contract.unit_layout
    ]
    for name in of_logs:
        yield Promise(
            id=name,
            text=LINEAGE_ANOMALIES[name].meaning,
            source=form.name,
            forbids=(name,),
            is_purpose=False,
            check=LINEAGE,
        )


def _notes(form: StreamFormat, survey: "Survey") -> Iterator[str]:
    yield (
        f"not exercised without the operations of the source: {', '.join(NEED_SOURCE)}; write both into one file of "
        "JSON Lines, and check it with --promises"
    )
    if not form.has_opens:
        yield (
            f"not exercised, as sessions do not declare where they begin: {', '.join(NEED_OPENS)}; a mapping file can "
            "name a kind of line that is open"
        )
    if not survey.images:
        how = "have the source log whole rows" if form.is_by_source else "name their field in the mapping file: before"
        yield f"not exercised, as rows have no before-images: {', '.join(NEED_IMAGES)}; {how}"
    if survey.has_tables_for_partitions:
        yield (
            f"{survey.keyless} of {survey.rows} rows came without a key, and no line names its partition: each table "
            "is taken as one partition, in the order of its lines; else name the key's columns with --key, or write "
            "each line with the message's key and partition"
        )


class Survey:
    """The results of a first pass over a file, and the records of the second."""

    def __init__(self, paths: Sequence[Path], form: StreamFormat) -> None:
        self._paths, self._path, self._form = paths, paths[0], form
        self._file = 0  # The number of the file that is read.
        self.positions = Positions()
        self.units = Units()
        self.has_times = False
        self._lines = array("q")  # The number of each event's line, or row.
        self._files = array("q")  # The number of each event's file.
        self.rows = self.keyless = self.spanless = self.images = 0
        self._opens: dict[tuple[str, Json], list[Key]] = {}
        self._open: set[tuple[str, Json]] = set()
        self._highest: dict[tuple[str, Json, str | None], Key] = {}  # The highest position of each log so far, and
        self._going_on: set[tuple[int, tuple[str, Json, str | None]]] = set()  # the logs that were met in a file.
        self._tables: dict[str | None, set[str]] = {}  # By partition.
        for place, content in self._every():
            try:
                _require_sense(content)
                self._take(place, content)
            except ValueError as error:
                raise HistoryError(f"{self._path}, {place}: {error}") from None

    def places(self) -> Iterator[str]:
        """The line of each event, with the name of its file if there are several."""
        if len(self._paths) == 1:
            return map(str, self._lines)
        named = zip(self._lines, self._files, strict=True)
        return (f"{line} of {self._paths[file].name}" for line, file in named)

    def records(self, images: ImageWriter) -> Iterator[Record]:
        """The events, numbered. Writes their before-images."""
        numbers: dict[tuple[str, Json], int] = {}
        counts: dict[str, int] = {}
        sent: dict[tuple[str, Json], int] = {}
        for number, (place, found) in enumerate(self._events()):
            content = self._with_table(found) if found.kind == "tombstone" else found
            if content is None:
                continue
            is_end = content.kind == "commit" and content.collection is None and content.unit is not None
            if is_end and not sent:
                continue
            who = next(reversed(sent)) if is_end else (content.subscriber, content.session)
            time_ns = number if content.time_ns is None else content.time_ns
            line = int(place.rsplit(" ", 1)[1])
            if who not in numbers:
                numbers[who] = self._session(who, counts)
                sent[who] = 0
                if who in self._opens and who not in self._open:
                    self._note(line)
                    yield self._opening(who, numbers[who], time_ns)
                    sent[who] = 1
            if content.before is not None:
                images.add(len(self._lines), content.before)
            self._note(line)
            yield self._event(content, who, numbers, sent, time_ns)
            sent[who] += 1
        yield Footer(0, "imported")

    def _note(self, line: int) -> None:
        self._lines.append(line)
        self._files.append(self._file)

    def _events(self) -> Iterator[tuple[str, Content]]:
        """The contents that are events, and one behind them for each unit that lacks a row."""
        yield from self._events_of_topics() if self.units.topics.are_apart else self._events_of_one()
        for place, unit in self.units.holes.found():
            yield place, Content("commit", unit=unit, unit_rows=LACKS_A_ROW)
        if self._form.contract.delivery != "at-least-once":
            for place, unit in self.units.again:
                yield place, Content("commit", unit=unit, unit_rows=CAME_AGAIN)

    def _events_of_one(self) -> Iterator[tuple[str, Content]]:
        """The events: ends of units where they stand among rows, also those that never came."""
        last: Json = None
        for place, content in self._every():
            if content.unit is not None and content.unit != last:
                if self.units.is_endless(last):
                    yield place, Content("commit", unit=last, unit_rows=0)  # The end that never came.
                last = content.unit
            if content.kind == "unit":
                if self.units.counts_end(content.unit):
                    size = self.units.size(content.unit)
                    yield place, Content("commit", unit=content.unit if size else None, unit_rows=size)
            elif content.kind != "begun":
                yield place, content

    def _events_of_topics(self) -> Iterator[tuple[str, Content]]:
        """The events, and behind all rows the ends of units, as topics have no order among them."""
        topics = self.units.topics
        yield from ((place, content) for place, content in self._every() if content.kind not in ("unit", "begun"))
        yield from topics.in_disorder(self._every())
        for place, unit in topics.ended():
            if size := self.units.size(unit):
                yield place, Content("commit", unit=unit, unit_rows=size)

    def _every(self) -> Iterator[tuple[str, Content]]:
        if self._form.begin is not None:
            self._form.begin()
        for number, path in enumerate(self._paths):
            self._file, self._path = number, path
            for place, line in lines_of(path):
                try:
                    for content in self._form.read(line):
                        yield place, content
                except ValueError as error:
                    raise HistoryError(f"{path}, {place}: {error}") from None

    def _with_table(self, content: Content) -> Content | None:
        """A tombstone with its row's key; None if the partition does not show one table, to which it belongs."""
        tables = self._tables.get(content.span, set())
        return content._replace(key=[*tables, content.key]) if content.span and len(tables) == 1 else None

    def _take(self, place: str, content: Content) -> None:
        if content.kind == "tombstone":
            return
        if content.collection is not None:
            self._tables.setdefault(content.span, set()).add(content.collection)
        self.units.take(content, place)
        if content.kind in ("unit", "begun"):
            return
        self.has_times |= content.time_ns is not None
        if content.kind in ("row", "backfill"):
            self.rows += 1
            self.keyless += not content.has_key
            self.spanless += content.span is None
            self.images += content.before is not None
        who = (content.subscriber, content.session)
        if content.kind == "open":
            self._open.add(who)
        if content.position is None or content.kind not in _EVENTS:
            return
        try:
            key = self.positions.take(content.position, place)
        except ValueError as error:
            what = "watermark" if content.kind == "watermark" else "position"
            raise HistoryError(
                f"{self._path}, {place}: {str(error).replace('its position', f'its {what}', 1)}"
            ) from None
        if len(self._paths) > 1 and not self._form.is_by_source:  # There, topics and tables have orders of their own.
            self._follow((*who, content.span), key)
        self._opens.setdefault(who, []).append(key)
        lowest = [min(self._opens[who]), min(self._opens[who], key=lambda each: each[-1])]
        self._opens[who] = lowest  # By all parts, and by the last one alone.

    def _follow(self, log: tuple[str, Json, str | None], key: Key) -> None:
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

    def _session(self, who: tuple[str, Json], counts: dict[str, int]) -> int:
        """The number of a session: its own if that is a number, else the subscriber's next."""
        subscriber, session = who
        counts[subscriber] = counts.get(subscriber, 0) + 1
        is_own = type(session) is int and 0 <= session <= _INT_MAX
        return int(str(session)) if is_own else counts[subscriber] - 1

    def _opening(self, who: tuple[str, Json], number: int, time_ns: int) -> StreamEvent:
        lowest = min(map(self.positions.number, self._opens[who]))
        return StreamEvent(time_ns, who[0], number, 0, "open", position=lowest - 1)

    def _event(
        self,
        content: Content,
        who: tuple[str, Json],
        numbers: dict[tuple[str, Json], int],
        sent: dict[tuple[str, Json], int],
        time_ns: int,
    ) -> StreamEvent:
        position = None
        if content.position is not None and content.kind in _EVENTS:
            position = self.positions.number(self.positions.take(content.position, ""))
        return StreamEvent(
            time_ns,
            who[0],
            numbers[who],
            sent[who],
            content.kind,
            span=content.collection if self.has_tables_for_partitions and content.span is None else content.span,
            key=content.key,
            value=content.value,
            position=position,
            ordinal=content.ordinal,
            epoch=content.epoch,
            unit=None if content.unit is None else self.units.number(content.unit),
            unit_rows=self.units.size(content.unit) if content.unit_rows is None else content.unit_rows,
        )

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


def _require_sense(content: Content) -> None:
    """Raise ValueError for values that no event can have."""
    if content.position is None and content.kind in {"row", "watermark"}:
        raise ValueError(f"a {content.kind} without a position")
    if isinstance(content.unit, list | dict):
        raise ValueError("its unit, or transaction, is neither a text nor a number")
    sizes = [content.unit_rows or 0, *(count for _, count in content.sizes)]
    if max(sizes) > UNIT_MAX or min(sizes) < 0:
        raise ValueError(f"a unit of so many rows: the limit is {UNIT_MAX:,}")
    if any(abs(number or 0) > _INT_MAX for number in (content.ordinal, content.epoch, content.time_ns)):
        raise ValueError("one of its numbers does not fit into 64 bits")
