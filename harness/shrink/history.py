"""Makes a history from elsewhere small: the part that still has a finding, as a file to judge, to read and to send.

Leaving records out must not make an anomaly: without the write, a read of its value would show one that no operation
wrote. So the evidence of the finding stays whole, with every write of a value of which there are several writers, and a
part counts only if its finding rests on that evidence alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from harness.core.errors import ScenarioError
from harness.core.record import Complete, Evidence, Invoke, Json, StreamEvent
from harness.record.formats.edn.exchange import write_edn_history
from harness.record.formats.jsonl import write_jsonl
from harness.report.model import FindingRow, Report

TRIES_MAX: Final = 1_000
EDN: Final = ".edn"
Judge = Callable[[Path], Report]
Tell = Callable[[str], None]


class Part(NamedTuple):
    """An operation or a stream event: its number in findings, and its records with their positions in the history."""

    number: int  # The index of an operation, or the position of an event.
    placed: tuple[tuple[int, Evidence], ...]

    @property
    def is_event(self) -> bool:
        """True for a stream event."""
        return isinstance(self.placed[0][1], StreamEvent)


class Small(NamedTuple):
    """The outcome: the report on the part that was written, and the sizes before and after."""

    report: Report
    finding: FindingRow
    before: tuple[int, int]  # Operations, and stream events.
    after: tuple[int, int]
    tries: int


def shrunk(records: Mapping[int, Evidence], finding: FindingRow, out: Path, judge: Judge, tell: Tell) -> Small:
    """Write the smallest part of a history that still has the finding to `out`, in the format of its suffix.

    `records` is the history by position, `judge` judges a file. Raises ScenarioError if no part can show it in that
    format, or if the history has no records that the finding names.
    """
    try:
        out.touch(exist_ok=False)
    except OSError as error:
        raise ScenarioError(f"{out}: cannot be written ({error.strerror}); choose another with --shrink") from None
    parts, search = list(_parts(records)), _Search(finding, out, judge, tell)
    try:
        kept = search.minimal(parts, _needed(parts, finding))
        report, found = search.tried(kept)
        if found is None:
            raise ScenarioError(f"{out}: does not show the finding in this format; name a file that ends with .jsonl")
    except BaseException:
        out.unlink()  # An interrupt, too: a part that was not confirmed is worth nothing.
        raise
    return Small(report, found, _size(parts), _size(kept), search.tries)


def _parts(records: Mapping[int, Evidence]) -> Iterator[Part]:
    """The operations and the stream events in order; faults and the like are left out."""
    ends = {each.index: (place, each) for place, each in records.items() if isinstance(each, Complete)}
    for position, record in records.items():
        if isinstance(record, Invoke):
            end = ends.get(record.index)
            yield Part(record.index, ((position, record), *((end,) if end is not None else ())))
        elif isinstance(record, StreamEvent):
            yield Part(position, ((position, record),))


def _size(parts: Sequence[Part]) -> tuple[int, int]:
    events = sum(part.is_event for part in parts)
    return len(parts) - events, events


def _needed(parts: Sequence[Part], finding: FindingRow) -> list[Part]:
    """The evidence, and every writer of a value in it that has several."""
    ops, events = set(finding.ops), set(finding.events)
    evidence = [part for part in parts if part.number in (events if part.is_event else ops)]
    if not evidence:
        raise ScenarioError("the finding names no operation or event, so there is no part of the history to keep")
    writers = Counter(value for part in parts for value in _values(part, is_write=True))
    wanted = {value for part in evidence for value in _values(part) if writers[value] > 1}
    return [part for part in parts if part in evidence or wanted & _values(part, is_write=True)]


def _values(part: Part, *, is_write: bool = False) -> set[bytes]:
    """The keys with values that an operation wrote and, unless `is_write`, read."""
    found = set[bytes]()
    for _, record in part.placed:
        for mop in (record.mops or ()) if isinstance(record, Invoke | Complete) else ():
            if mop.f != "r":
                found.add(_pair(mop.key, mop.value))
            elif not is_write:
                values = mop.value if isinstance(mop.value, list) else [mop.value]
                found.update(_pair(mop.key, each) for each in values)
    return found


def _pair(key: Json, value: Json) -> bytes:
    return msgspec.json.encode((key, value))


class _Search:
    """Tries parts of a history."""

    def __init__(self, finding: FindingRow, out: Path, judge: Judge, tell: Tell) -> None:
        self._finding, self._out, self._judge, self._tell = finding, out, judge, tell
        self.tries = 0

    def minimal(self, parts: Sequence[Part], needed: Sequence[Part]) -> list[Part]:
        """The needed parts with as few of the others as show the finding, by delta debugging.

        Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, section 3.
        """
        rest = [part for part in parts if part not in needed]
        step = len(rest)
        if self._shows(parts, needed):
            return list(needed)
        while rest and step and self.tries < TRIES_MAX:
            step = max(1, step // 2)
            place = 0
            while place < len(rest) and self.tries < TRIES_MAX:
                fewer = rest[:place] + rest[place + step :]
                self._tell(f"try {self.tries + 1}: {len(needed) + len(rest):,} records are left")
                if self._shows(parts, [*needed, *fewer]):
                    rest = fewer
                else:
                    place += step
            if step == 1:
                break
        chosen = {id(part) for part in (*needed, *rest)}
        return [part for part in parts if id(part) in chosen]

    def _shows(self, parts: Sequence[Part], kept: Sequence[Part]) -> bool:
        chosen = {id(part) for part in kept}
        return self.tried([part for part in parts if id(part) in chosen])[1] is not None

    def tried(self, kept: Sequence[Part]) -> tuple[Report, FindingRow | None]:
        """Write that part, and judge it: the report, and the finding if the part has it."""
        self.tries += 1
        ops = [part.number for part in kept if not part.is_event]
        positions = _written(kept, self._out)
        report = self._judge(self._out)
        for found in report.findings:
            is_same = (found.anomaly, found.promise) == (self._finding.anomaly, self._finding.promise)
            named = {ops[index] for index in found.ops if index < len(ops)}
            events = {positions[place] for place in found.events if place in positions}
            if is_same and named <= set(self._finding.ops) and events <= set(self._finding.events):
                return report, found
        return report, None


def _written(kept: Sequence[Part], out: Path) -> dict[int, int]:
    """Write these parts, with operations, and the events of each session, counted anew.

    Returns the number of each event by its position in the file.
    """
    new = {part.number: index for index, part in enumerate(part for part in kept if not part.is_event)}
    records, numbers = list[Evidence](), dict[int, int]()
    counts = Counter[tuple[str, int]]()
    for place, record in sorted((each for part in kept for each in part.placed), key=lambda each: each[0]):
        if isinstance(record, Invoke | Complete):
            records.append(msgspec.structs.replace(record, index=new[record.index]))
        elif isinstance(record, StreamEvent):
            session = (record.subscriber, record.session)
            numbers[len(records)] = place
            records.append(msgspec.structs.replace(record, number=counts[session]))
            counts[session] += 1
    (write_edn_history if out.suffix == EDN else write_jsonl)(records, out)
    return numbers
