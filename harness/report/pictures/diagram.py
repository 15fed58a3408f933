"""A space-time diagram of a trace, as shapes: nodes are lanes, time runs to the right, messages are arrows.

Too many shapes are thinned, and `notes` say by how much. Lost messages are chosen first, then others by a scrambled
number: if requests and answers alternate, choosing every n-th could show requests only.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from harness.core.trace import SECOND, Window
from harness.report.pictures.labels import Label, labels
from harness.report.pictures.moments import Message, Moment, Moments, Span

ARROWS_MAX: Final = 1500
MARKS_MAX: Final = 1500  # The most shapes of each other kind.
COLOURS: Final = 7  # Roles of messages with a colour of their own; the rest share one.
LANE: Final = 64  # Heights and widths are in pixels.
STRIP: Final = 18
AXIS: Final = 26
PIXELS_PER_ARROW: Final = 12
WIDTH_MIN, WIDTH_MAX = 1000, 24_000
TICK_MIN: Final = 110
LABEL_MAX: Final = 56  # The most pixels of the text at a tick.
CLIENTS: Final = "clients"
_QUIET: Final = re.compile("heart.?beat|keep.?alive|are.?you.?there|i.?am.?here", re.IGNORECASE)
MS: Final = 1_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with a title."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """A line, as SVG path data. `group` are the classes by which a page hides it."""

    d: str
    kind: str
    title: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Type:
    """A type of message in the legend. `hidden` is the class by which a page hides it, `kind` that of its colour."""

    hidden: str
    kind: str
    name: str
    count: int

    @property
    def is_quiet(self) -> bool:
        """True if a page hides them at first."""
        return is_quiet(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Shapes in drawing order, in pixels from the upper left."""

    width: float
    height: float
    lanes: tuple[Label, ...]
    ticks: tuple[Label, ...]
    boxes: tuple[Box, ...]
    paths: tuple[Path, ...]
    arrows: tuple[Path, ...]
    roles: tuple[tuple[str, str], ...]  # The roles of messages: class, and the ends between which they go.
    types: tuple[Type, ...]
    labels: tuple[Label, ...]
    notes: tuple[str, ...]


def chosen_messages(found: Moments) -> tuple[dict[int, Message], str]:
    """The messages to draw, and a sentence on how they were chosen."""
    named = {number: each for number, each in found.messages.items() if each.label}
    lost = {number: each for number, each in found.messages.items() if each.lost_ns is not None}
    others = {number: each for number, each in found.messages.items() if each.lost_ns is None}
    shown_lost = _thinned(lost, ARROWS_MAX)
    shown = _thinned(others, ARROWS_MAX - len(shown_lost)) | named
    drawn = len(shown) + len(shown_lost)
    total = len(found.messages)
    if drawn == total:
        every = f"All {total:,} messages are drawn, {f'{len(lost):,}' if lost else 'none'} of them lost."
        return dict(sorted((shown | shown_lost).items())), every
    which = f"{len(shown_lost):,} of the {len(lost):,} that were lost, {len(shown):,} of the {len(others):,} others"
    text = f"Thinned: {drawn:,} of {total:,} messages are drawn ({which}); trace.jsonl has all of them."
    return dict(sorted((shown | shown_lost).items())), text


def diagram(
    found: Moments,
    messages: Mapping[int, Message],
    window: Window,
    subscribers: Sequence[str],
    *,
    lane_px: int = LANE,
    found_ns: int | None = None,
) -> Diagram:
    """The shapes of a trace. `messages` are those to draw, `found_ns` is when the finding became visible."""
    lanes = _lanes(found, subscribers)
    faults = _packed([span for span in found.spans if span.kind == "fault"])
    width = min(max(WIDTH_MIN, PIXELS_PER_ARROW * len(messages)), WIDTH_MAX)
    top = AXIS + STRIP * (max((row for row, _ in faults), default=-1) + 1)
    canvas = _Canvas(
        window, width, top, lane_px, {name: top + lane_px * (place + 0.5) for place, name in enumerate(lanes)}
    )
    colours = _colours(found.messages.values(), subscribers)
    types = {type_: f"y{number}" for number, type_ in enumerate(_types(found.messages.values()))}
    places = {name: f"a{number}" for number, name in enumerate(lanes)}

    def arrow(message: Message) -> Path:
        group = " ".join((types[message.type], places[lane(message.source)], places[lane(message.target)]))
        drawn = canvas.arrow(message, colours.get(role(message, subscribers), "other"))
        return replace(drawn, group=group)

    notes: list[str] = []
    boxes = [canvas.strip(row, span) for row, span in faults]
    boxes += [canvas.box(span) for span in found.spans if span.kind in ("down", "paused")]
    boxes += [canvas.box(span) for span in _some([s for s in found.spans if s.kind == "sync"], "syncs", notes)]
    paths = [canvas.phase(moment) for moment in found.phases]
    paths += [] if found_ns is None else [canvas.found(found_ns)]
    paths += canvas.linked(found.watermarks) if _fits(found.watermarks, "watermarks", notes) else []
    paths += canvas.linked(found.views)
    for label, moments in (("timers", found.timers), ("rows that were delivered", found.rows)):
        paths += [canvas.moment(moment) for moment in _some(moments, label, notes)]
    return Diagram(
        width=width,
        height=top + lane_px * len(lanes) + 4,
        lanes=tuple(Label(0, y, name) for name, y in canvas.lanes.items()),
        ticks=tuple(canvas.ticks()),
        boxes=tuple(boxes),
        paths=tuple(paths),
        arrows=tuple(map(arrow, messages.values())),
        roles=tuple((kind, name) for name, kind in colours.items()),
        types=tuple(_legend(found.messages.values(), colours, types, subscribers)),
        labels=tuple(labels(canvas, messages, (*found.watermarks, *found.rows))),
        notes=tuple(notes),
    )


def is_quiet(message_type: str) -> bool:
    """True for messages by which nodes only show that they live: many, and rarely a reason."""
    return _QUIET.search(message_type) is not None


def lane(name: str) -> str:
    """The lane of a node; all clients share one."""
    return CLIENTS if name.startswith("client-") else name


def time_text(ns: int) -> str:
    """A moment as text, in seconds."""
    return f"{ns / SECOND:.6f} s"


class _Canvas:
    """The coordinates of the drawing."""

    def __init__(self, window: Window, width: float, top: float, lane_px: int, lanes: Mapping[str, float]) -> None:
        self.window, self.width, self.top, self.lane_px, self.lanes = window, width, top, lane_px, lanes

    def x(self, ns: int) -> float:
        """The horizontal position of a moment; it may lie outside the picture."""
        share = (ns - self.window.from_ns) / (self.window.to_ns - self.window.from_ns)
        return round(share * self.width, 2)

    def y(self, name: str) -> float:
        """The height of a node's lane."""
        return self.lanes[lane(name)]

    def ticks(self) -> Iterable[Label]:
        step_ns = next(
            step for step in _round_steps() if step * self.width >= TICK_MIN * (self.window.to_ns - self.window.from_ns)
        )
        ns = -(-self.window.from_ns // step_ns) * step_ns
        decimals = max(0, 10 - len(str(step_ns)))
        while ns <= self.window.to_ns:
            x, text = self.x(ns), f"{ns / SECOND:.{decimals}f} s"
            yield Label(x, AXIS - 10, text if x + LABEL_MAX <= self.width else "")  # Not beyond the picture's edge.
            ns += step_ns

    def strip(self, row: int, span: Span) -> Box:
        """The box of a fault: a strip above the lanes."""
        begin, width = self._extent(span)
        y = AXIS + STRIP * row
        return Box(begin, y + 2, width, STRIP - 4, "fault", _span_title(span), span.text)

    def box(self, span: Span) -> Box:
        begin, width = self._extent(span)
        y = self.lanes[lane(str(span.node))]
        if span.kind == "sync":
            return Box(begin, y + 14, max(width, 1), 5, "sync", _span_title(span))
        return Box(
            begin,
            y - self.lane_px * 0.42,
            width,
            self.lane_px * 0.84,
            span.kind,
            _span_title(span),
            f"{span.node} {span.kind}",
        )

    def phase(self, moment: Moment) -> Path:
        return Path(
            f"M{self.x(moment.ns)} {AXIS}V{self._bottom()}", "phase", f"{moment.text} at {time_text(moment.ns)}"
        )

    def found(self, ns: int) -> Path:
        """The line of the moment at which a finding became visible."""
        return Path(f"M{self.x(ns)} {AXIS}V{self._bottom()}", "found", f"the finding, at {time_text(ns)}")

    def moment(self, moment: Moment) -> Path:
        """The tick of a moment at its lane: a timer above it, a row below."""
        x, y = self.x(moment.ns), self.lanes[lane(str(moment.node))]
        d = f"M{x} {y - 9}v6" if moment.kind == "timer" else f"M{x} {y + 4}v8"
        return Path(d, _kind(moment), f"{moment.node}: {moment.text} at {time_text(moment.ns)}")

    def linked(self, moments: Sequence[Moment]) -> list[Path]:
        """A tick across the lane for each moment, and a line from lane to lane through those of one group."""
        paths = []
        groups: dict[str, list[Moment]] = {}
        for moment in moments:
            groups.setdefault(str(moment.group), []).append(moment)
            x, y = self.x(moment.ns), self.lanes[lane(str(moment.node))]
            title = f"{moment.node}: {moment.text} at {time_text(moment.ns)}"
            paths.append(Path(f"M{x} {y - 14}v28", _kind(moment), title))
        for group in groups.values():
            first = {moment.node: moment for moment in reversed(group)}  # A repetition adds no second line.
            points = sorted((self.lanes[lane(str(node))], self.x(moment.ns)) for node, moment in first.items())
            if len(points) > 1:
                d = "M" + "L".join(f"{x} {y}" for y, x in points)
                paths.append(Path(d, f"{group[0].kind} link", group[0].text))
        return paths

    def arrow(self, message: Message, colour: str) -> Path:
        colour = f"{colour} decisive" if message.label else colour
        x1, y1 = self.x(message.sent_ns), self.lanes[lane(message.source)]
        y2 = self.lanes[lane(message.target)]
        if message.lost_ns is not None:
            x, y = max(self.x(message.lost_ns), x1 + 6), y1 + 0.6 * (y2 - y1)
            d = f"M{x1} {y1}L{x} {y:.1f}m-5 -5l10 10m0 -10l-10 10"
            return Path(d, f"m {colour} lost", _message_title(message))
        if not message.arrivals_ns:
            return Path(f"M{x1} {y1}L{self.width} {(y1 + y2) / 2}", f"m {colour} open", _message_title(message))
        d = ""
        for ns in message.arrivals_ns:
            x2 = self.x(ns)
            d += f"M{x1} {y1}L{x2} {y2}" if y1 != y2 else f"M{x1} {y1}C{x1} {y1 - 24} {x2} {y1 - 24} {x2} {y2}"
            d += _head(x1, y1, x2, y2)
        for arrived_ns, handled_ns in zip(message.arrivals_ns, message.handled_ns, strict=False):
            if handled_ns > arrived_ns:  # The message waited in the inbox.
                d += f"M{self.x(arrived_ns)} {y2}H{self.x(handled_ns)}"
        return Path(d, f"m {colour}", _message_title(message))

    def _extent(self, span: Span) -> tuple[float, float]:
        begin = 0.0 if span.begin_ns is None else max(0.0, self.x(span.begin_ns))
        end = self.width if span.end_ns is None else min(self.width, self.x(span.end_ns))
        return begin, round(max(0.0, end - begin), 2)

    def _bottom(self) -> float:
        return self.top + self.lane_px * len(self.lanes)


def _kind(moment: Moment) -> str:
    return f"{moment.kind} decisive" if moment.label else moment.kind


def _lanes(found: Moments, subscribers: Sequence[str]) -> list[str]:
    """The lanes: clients above, subscribers below, the others between them."""
    names = dict.fromkeys(lane(name) for name in found.nodes)
    names.update(dict.fromkeys(lane(end) for each in found.messages.values() for end in (each.source, each.target)))
    middle = sorted(name for name in names if name != CLIENTS and name not in subscribers)
    return [*(name for name in names if name == CLIENTS), *middle, *(name for name in subscribers if name in names)]


def _packed(spans: Sequence[Span]) -> list[tuple[int, Span]]:
    """Each span with the first row that is free during its time."""
    ends: list[int | None] = []  # The end of the last span in each row; None: it continues.
    packed = []
    for span in spans:
        begin_ns = span.begin_ns or 0
        row = next((row for row, end in enumerate(ends) if end is not None and end <= begin_ns), len(ends))
        ends[row : row + 1] = [span.end_ns]
        packed.append((row, span))
    return packed


def role(message: Message, subscribers: Sequence[str]) -> str:
    """The ends between which a message goes: "client to d*", where d* stands for d1, d2 and so on."""
    return f"{_part(message.source, subscribers)} to {_part(message.target, subscribers)}"


def _part(name: str, subscribers: Sequence[str]) -> str:
    if lane(name) == CLIENTS:
        return "client"
    if name in subscribers:
        return "subscriber"
    kind = name.rstrip("0123456789")
    return f"{kind}*" if kind not in {"", name} else name


def _types(messages: Iterable[Message]) -> list[str]:
    return [type_ for type_, _ in Counter(message.type for message in messages).most_common()]


def _colours(messages: Iterable[Message], subscribers: Sequence[str]) -> dict[str, str]:
    frequent = Counter(role(message, subscribers) for message in messages).most_common(COLOURS)
    return {name: f"t{number}" for number, (name, _) in enumerate(frequent)}


def _legend(
    messages: Iterable[Message], colours: Mapping[str, str], types: Mapping[str, str], subscribers: Sequence[str]
) -> Iterable[Type]:
    """The types by role, the most frequent first; a type of several roles has the colour of the first."""
    counts = Counter[str]()
    roles: dict[str, str] = {}
    for message in messages:
        counts[message.type] += 1
        roles.setdefault(message.type, role(message, subscribers))
    order = list(colours)
    named = sorted(
        counts, key=lambda name: (order.index(roles[name]) if roles[name] in order else COLOURS, -counts[name])
    )
    for name in named:
        yield Type(types[name], colours.get(roles[name], "other"), name, counts[name])


def _thinned(messages: Mapping[int, Message], most: int) -> dict[int, Message]:
    if len(messages) <= most:
        return dict(messages)
    scrambled = sorted(messages, key=lambda number: (number * 2_654_435_761 % 2**32, number))
    return {number: messages[number] for number in scrambled[:most]}


def _some(items: list[T], label: str, notes: list[str]) -> list[T]:
    return items if _fits(items, label, notes) else []


def _fits(items: Sequence[object], label: str, notes: list[str]) -> bool:
    """True if there are few enough items to draw. Otherwise adds a note that they are left out."""
    if len(items) <= MARKS_MAX:
        return True
    notes.append(f"Left out: {len(items):,} {label}, too many to be distinguished here; trace.jsonl has them.")
    return False


def _head(x1: float, y1: float, x2: float, y2: float) -> str:
    down = 1 if y2 > y1 else -1
    back = -4 if x2 - x1 > abs(y2 - y1) / 4 else 0
    return f"M{x2 - 3 + back} {y2 - 7 * down}L{x2} {y2}L{x2 + 3 + back} {y2 - 7 * down}"


def _message_title(message: Message) -> str:
    lines = [f"{message.type}  {message.source} to {message.target}", f"sent at {time_text(message.sent_ns)}"]
    lines += [f"arrived {(ns - message.sent_ns) / MS:.3f} ms later" for ns in message.arrivals_ns]
    for arrived_ns, handled_ns in zip(message.arrivals_ns, message.handled_ns, strict=False):
        if handled_ns > arrived_ns:
            lines.append(f"waited in the inbox for {(handled_ns - arrived_ns) / MS:.3f} ms")
    if message.lost_ns is not None:
        lines.append(f"lost {(message.lost_ns - message.sent_ns) / MS:.3f} ms later")
    elif not message.arrivals_ns:
        lines.append("still under way when the run ended")
    return "\n".join((*lines, message.content))


def _span_title(span: Span) -> str:
    begin = "before" if span.begin_ns is None else time_text(span.begin_ns)
    end = "it went on" if span.end_ns is None else time_text(span.end_ns)
    return f"{span.node or 'fault'} {span.kind}: {span.text}\nfrom {begin} until {end}"


def _round_steps() -> Iterable[int]:
    """1, 2, 5, 10, 20, ... nanoseconds."""
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10
