"""The stretch of a run around a finding as a drawing: lanes for clients, nodes and subscribers, faults as bands.

A client's lane shows its operations as bars, a node's lane the operations that it answered. A subscriber's lane shows
its watermarks as a staircase, and its rows as dots, each at the height of its position's rank. The evidence is numbered
as in its table.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from harness.core.record import Complete, Invoke, StreamEvent
from harness.record.exposure import FOREVER, Window
from harness.report.evidence import Slice, event_text, operation_text
from harness.report.pictures.curves import LINES_MAX
from harness.report.pictures.plots import Band, band, in_force
from harness.report.pictures.scale import Tick, TimeAxis, duration, moment
from harness.report.screen import visible
from harness.report.series import WATERMARKS, Series
from nemesis.registry import PACKAGES

CLIENTS_MAX: Final = 12
LANE: Final = 20
STREAM: Final = 60
TOP: Final = 18
NEAR: Final = 1.6  # In percent of the width: numbers closer than this are put above each other.
NOTHING: Final = Markup("")
DOWN: Final = frozenset(package.name for package in PACKAGES.values() if package.takes_down)


@dataclass(frozen=True, slots=True)
class Lane:
    """A named strip of the drawing, from `y` downwards."""

    name: str
    kind: str
    y: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A shape with a title: a bar, a dot, a staircase. `x` and `width` are in units of WIDTH."""

    kind: str
    title: str
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    d: Markup = NOTHING


@dataclass(frozen=True, slots=True)
class Number:
    """The number of a piece of evidence in the drawing."""

    number: int
    percent: float
    y: float
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The drawing of a slice: its lanes and shapes."""

    axis: TimeAxis
    height: int
    lanes: tuple[Lane, ...]
    bands: tuple[Band, ...]
    bars: tuple[Mark, ...]
    dots: tuple[Mark, ...]
    stairs: tuple[Mark, ...]
    numbers: tuple[Number, ...]
    ticks: tuple[Tick, ...]
    views: tuple[tuple[float, str], ...]
    notes: tuple[str, ...]


def timeline(found: Slice, series: Series, kinds: Sequence[str]) -> Timeline:
    """The drawing of a slice."""
    axis = TimeAxis(low_ns=found.low_ns, high_ns=found.high_ns, is_order=series.is_order)
    active = in_force(series.windows, axis.low_ns, axis.high_ns)
    notes = list(found.notes)
    drawing = _Drawing(found, axis, _lanes(found, active, notes), series.style_of)
    drawing.draw()
    down = [mark for window in active if window.kind in DOWN for mark in drawing.down(window)]
    return Timeline(
        axis=axis,
        height=drawing.bottom,
        lanes=tuple(drawing.lanes.values()),
        bands=tuple(band(window, axis, kinds) for window in active),
        bars=(*down, *drawing.bars),
        dots=tuple(drawing.dots),
        stairs=tuple(drawing.stairs),
        numbers=tuple(_apart(drawing.numbers)),
        ticks=tuple(axis.ticks(6)),
        views=tuple((axis.percent(ns), text) for ns, text in series.views if axis.low_ns <= ns <= axis.high_ns),
        notes=tuple(notes),
    )


def _lanes(found: Slice, active: Sequence[Window], notes: list[str]) -> list[tuple[str, str]]:
    """The kind and name of each lane, from above: clients, nodes, subscribers."""
    counts = Counter(invoke.process for invoke, _ in found.operations)
    needed = {invoke.process for invoke, _ in found.operations if f"op {invoke.index}" in found.numbers}
    ranked = sorted(counts, key=lambda process: (process not in needed, -counts[process], process))
    if len(ranked) > CLIENTS_MAX:
        notes.append(f"{len(ranked) - CLIENTS_MAX} of {len(ranked)} clients have no lane here.")
    clients = [("client", str(process)) for process in sorted(ranked[:CLIENTS_MAX])]
    streams = sorted({event.subscriber for _, event in found.events})
    nodes = {complete.node for _, complete in found.operations if complete is not None and complete.node}
    nodes |= {name for window in active if window.kind in DOWN for name in window.targets.split(", ")}
    return [
        *clients,
        *(("node", name) for name in sorted(nodes) if name not in streams),
        *(("subscriber", name) for name in streams),
    ]


class _Drawing:
    """The shapes of a drawing, as they are added."""

    def __init__(
        self, found: Slice, axis: TimeAxis, lanes: Sequence[tuple[str, str]], style_of: Callable[[str], int]
    ) -> None:
        self.found, self.axis, self._style_of = found, axis, style_of
        self.lanes: dict[tuple[str, str], Lane] = {}
        self.bottom = TOP
        for kind, name in lanes:
            height = STREAM if kind == "subscriber" else LANE
            self.lanes[kind, name] = Lane(name, kind, self.bottom, height)
            self.bottom += height
        self.bars: list[Mark] = []
        self.dots: list[Mark] = []
        self.stairs: list[Mark] = []
        self.numbers: list[Number] = []
        self._anchors = {row.name: row.anchor for row in found.rows}

    def draw(self) -> None:
        """Draw everything but the faults of nodes."""
        for invoke, complete in self.found.operations:
            self._operation(invoke, complete)
        for (kind, name), lane in self.lanes.items():
            if kind == "subscriber":
                self._stream(lane, [each for each in self.found.events if each[1].subscriber == name])

    def down(self, window: Window) -> Iterator[Mark]:
        """The marks for times when nodes were down or paused."""
        for name in window.targets.split(", "):
            lane = self.lanes.get(("node", name)) or self.lanes.get(("subscriber", name))
            if lane is not None:
                end_ns = min(window.end_ns, self.axis.high_ns) if window.end_ns < FOREVER else self.axis.high_ns
                x = self.axis.x(window.begin_ns)
                title = f"{name}: {window.kind} from {moment(window.begin_ns)}"
                width = max(1.0, self.axis.x(end_ns) - x)
                yield Mark(kind="down", title=title, x=x, y=lane.y + 1, width=width, height=lane.height - 2)

    def _operation(self, invoke: Invoke, complete: Complete | None) -> None:
        name = f"op {invoke.index}"
        outcome = "unknown" if complete is None or complete.outcome == "info" else complete.outcome
        end_ns = self.axis.high_ns if complete is None else complete.time_ns
        is_marked = name in self.found.numbers
        lane = self.lanes.get(("client", str(invoke.process)))
        began = moment(invoke.time_ns, is_order=self.axis.is_order)
        title = f"{operation_text(invoke, complete, self.found.forms)}\n{began}"
        if complete is not None and not self.axis.is_order:
            title += f", took {duration(complete.time_ns - invoke.time_ns)}"
        if lane is not None:
            x = self.axis.x(invoke.time_ns)
            width = max(2.0, self.axis.x(end_ns) - x)
            kind = f"bar {outcome}{' marked' if is_marked else ''}"
            self.bars.append(Mark(kind=kind, title=title, x=x, y=lane.y + 5, width=width, height=lane.height - 10))
        at = self.lanes.get(("node", complete.node or "")) if complete is not None else None
        if at is not None:
            self._dot(f"answer {outcome}{' marked' if is_marked else ''}", title, end_ns, at.y + at.height / 2)
        if is_marked and lane is not None:
            self._number(
                name, (max(invoke.time_ns, self.axis.low_ns) + min(end_ns, self.axis.high_ns)) / 2, lane.y + 11
            )

    def _stream(self, lane: Lane, events: Sequence[tuple[int, StreamEvent]]) -> None:
        known = sorted({event.position for _, event in events if event.position is not None})
        rank = {position: place for place, position in enumerate(known)}

        def height(position: int) -> float:
            share = rank[position] / (len(known) - 1) if len(known) > 1 else 0.5
            return round(lane.y + lane.height - 12 - share * (lane.height - 24), 1)

        style, steps = f" s{min(self._style_of(lane.name), LINES_MAX)}", list[str]()
        for seq, event in events:
            x = self.axis.x(event.time_ns)
            y = lane.y + lane.height / 2 if event.position is None else height(event.position)
            is_mark = event.kind in WATERMARKS and event.position is not None
            if is_mark:
                steps.append(f"H{x}V{y}" if steps else f"M{x} {y}")
            where = f"{visible(event.subscriber)}, session {event.session}, {moment(event.time_ns)}"
            title = f"{event_text(event, self.found.forms)}\n{where}"
            is_marked = f"event {seq}" in self.found.numbers
            kind = f"mark{style}" if is_mark else "row" if event.kind in ("row", "backfill") else "other"
            self._dot(f"{kind}{' marked' if is_marked else ''}", title, event.time_ns, y)
            if is_marked:
                self._number(f"event {seq}", event.time_ns, y)
        if steps:
            d = Markup("".join(steps))  # noqa: S704  Numbers only.
            self.stairs.append(Mark(kind=f"stairs{style}", title=f"watermarks announced to {lane.name}", d=d))

    def _dot(self, kind: str, title: str, ns: int, y: float) -> None:
        d = Markup(f"M{self.axis.x(ns)} {y}h0")  # noqa: S704  Numbers only.
        self.dots.append(Mark(kind=kind, title=title, d=d))

    def _number(self, name: str, ns: float, y: float) -> None:
        self.numbers.append(Number(self.found.numbers[name], self.axis.percent(ns), y, self._anchors[name]))


def _apart(numbers: Sequence[Number]) -> Iterator[Number]:
    """The numbers, with those that would overlap shifted."""
    placed = list[Number]()
    for each in sorted(numbers, key=lambda number: number.number):
        x, y = each.percent, each.y
        for _ in range(len(numbers)):
            if not any(abs(x - other.percent) < NEAR and abs(y - other.y) < 14 for other in placed):
                break
            x += NEAR + 0.2
        placed.append(Number(each.number, min(x, 99.0), y, each.anchor))
    yield from placed
