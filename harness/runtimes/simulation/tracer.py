"""Watches a simulation and records all events in a window of time: every message, timer, write and fault.

Theory of operation.
1. Watching changes nothing: no draw, no timer, no event, no byte of a message. So a traced run equals the original.
2. Nothing is watched unless a tracer is given to the `World`; then ports, disks and machines are those made here.
3. A fifo connection delivers a prefix of its messages, in order: its n-th delivery is the n-th message. A datagram is
   recognized by its identity, since a link passes messages by reference; one may arrive twice.
4. A line is written at the time of its event. The start of something that began before the window and ends in it is
   written just before its end, with its own, earlier time; nodes down, pauses and faults in force when the window
   opens are written then.
5. A lost datagram is not reported: one that never arrives counts as lost at its sending.
"""

from collections import deque
from collections.abc import Callable
from io import BufferedWriter
from pathlib import Path
from types import TracebackType
from typing import Final, cast

import msgspec

from harness.core.draw import Stream
from harness.core.machine import (
    Answer,
    Call,
    Closed,
    Context,
    Drained,
    Durable,
    Event,
    Machine,
    Message,
    NodeId,
    Received,
    Settings,
    Synced,
    TimerFired,
)
from harness.core.record import Complete, Evidence, Fault, Invoke, Json, Mark, Probe, State, StreamEvent
from harness.core.trace import TraceRecord, What, Window
from harness.runtimes.simulation.disk import CrashMode, Disk
from harness.runtimes.simulation.links.datagram import Datagrams
from harness.runtimes.simulation.links.fifo import End, Fifo, Unread
from harness.runtimes.simulation.links.links import Links, Port
from harness.runtimes.simulation.loop import VirtualLoop

_ENDS: Final = {"crash": "start", "pause": "resume"}


class _Sent:
    """A message, from its sending to its end."""

    __slots__ = ("arrived_ns", "has_shown_arrival", "has_shown_sending", "message", "ns", "number", "source", "target")

    def __init__(self, number: int, ns: int, source: NodeId, target: NodeId, message: Message) -> None:
        self.number, self.ns, self.source, self.target, self.message = number, ns, source, target, message
        self.arrived_ns: int | None = None
        self.has_shown_sending = False
        self.has_shown_arrival = False


class Tracer:
    """A tracer of one run, which writes to `file`.

    Give it to the `World`, let it observe the evidence, then close it.
    """

    def __init__(self, window: Window, path: Path) -> None:
        self._window = window
        self._file: BufferedWriter = path.open("wb")
        self._encode = msgspec.json.Encoder(enc_hook=repr).encode
        self._loop: VirtualLoop | None = None
        self._next_number = 0
        self._under_way: dict[int, deque[_Sent]] = {}  # The messages of each fifo connection, in order.
        self._datagrams: dict[int, dict[int, list[_Sent]]] = {}  # The messages of each datagram link, by identity.
        self._inboxes: dict[NodeId, deque[_Sent]] = {}
        self._in_force: dict[tuple[str, str], TraceRecord] = {}  # Ongoing conditions, until the window opens.
        self._is_before = True

    def __enter__(self) -> "Tracer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for links in self._datagrams.values():
            for sent in (each for same in links.values() for each in same):
                if sent.arrived_ns is None and sent.has_shown_sending:
                    self._show("lost", sent, sent.ns)
        self._file.close()

    def watch(self, loop: VirtualLoop) -> None:
        """Take the time from that loop."""
        self._loop = loop

    # The parts of a watched world.

    def port(self, links: Links, address: NodeId, end: End) -> Port:
        """A port that reports messages sent from it and arriving at it."""
        return _Port(links, address, end, self)

    def disk(self, node: NodeId, stream: Stream) -> Disk:
        """A disk that reports its writes."""
        return _Disk(stream, node, self)

    def machine(self, make: Callable[[NodeId], Machine]) -> Callable[[NodeId], Machine]:
        """A factory of the same machines, which report the events that they handle."""
        return lambda node: _Machine(make(node), node, self)

    # Reports from watched parts.

    def note(
        self,
        node: NodeId,
        what: What,
        *,
        peer: NodeId | None = None,
        number: int | None = None,
        type_: str | None = None,
        fields: object = None,
        note: str | None = None,
    ) -> None:
        """Record an event at a node, at the current time."""
        record = TraceRecord(
            ns=self._now_ns(),
            what=what,
            node=node,
            peer=peer,
            number=number,
            type=type_,
            fields=cast("Json", fields),
            note=note,
        )
        self._write(record)
        if what == "start":
            self._inboxes[node] = deque()
        elif what == "crash":
            del self._inboxes[node]
            self._in_force.pop(("pause", node), None)

    def sent(self, pipe: Fifo | Datagrams, message: Message) -> None:
        """Note that a message was given to a link."""
        sent = _Sent(self._next_number, self._now_ns(), pipe.source, pipe.target, message)
        self._next_number += 1
        if self._is_inside(sent.ns):
            self._show_sending(sent)
        if isinstance(pipe, Datagrams):
            self._datagrams.setdefault(pipe.number, {}).setdefault(id(message), []).append(sent)
        elif pipe.is_delivering:
            self._under_way.setdefault(pipe.number, deque()).append(sent)
        else:
            self._end(sent, "lost")

    def arrived(self, pipe: Fifo | Datagrams, message: Message) -> None:
        """Note that a message reached the other end."""
        if isinstance(pipe, Datagrams):
            same = self._datagrams[pipe.number][id(message)]
            sent = next((each for each in same if each.arrived_ns is None), same[-1])
        else:
            sent = self._under_way[pipe.number].popleft()
        sent.arrived_ns = self._now_ns()
        sent.has_shown_arrival = False
        if pipe.target in self._inboxes:  # Else it is a client's, which handles it at once.
            self._inboxes[pipe.target].append(sent)
        self._end(sent, "deliver")

    def lost(self, pipe: Fifo) -> None:
        """Note that a connection lost its messages in transit, and those that its sender may still give it."""
        for sent in self._under_way.pop(pipe.number, ()):
            self._end(sent, "lost")

    def handled(self, node: NodeId, event: Event) -> None:
        """Note that a machine is about to handle an event."""
        match event:
            case Received():
                self._end(self._inboxes[node].popleft(), "handle")
            case TimerFired(name):
                self.note(node, "timer", type_=name)
            case Synced(token):
                self.note(node, "synced", fields={"token": token})
            case Closed(peer):
                self.note(node, "closed", peer=peer)
            case Drained(peer):
                self.note(node, "drained", peer=peer)

    def observe(self, evidence: Evidence) -> None:
        """Note a record of the journal."""
        self._write(_of_evidence(evidence))

    # Writing the trace.

    def _end(self, sent: _Sent, what: What) -> None:
        now_ns = self._now_ns()
        if not (self._is_inside(now_ns) or sent.has_shown_sending):
            return
        if not sent.has_shown_sending:
            self._show_sending(sent)
        if what == "handle" and sent.arrived_ns is not None and not sent.has_shown_arrival:
            self._show("deliver", sent, sent.arrived_ns)
        sent.has_shown_arrival |= what == "deliver"
        self._show(what, sent, now_ns)

    def _show_sending(self, sent: _Sent) -> None:
        sent.has_shown_sending = True
        self._put(
            TraceRecord(
                ns=sent.ns,
                what="send",
                node=sent.source,
                peer=sent.target,
                number=sent.number,
                type=_type(sent.message),
                fields=cast("Json", sent.message),
            )
        )

    def _show(self, what: What, sent: _Sent, ns: int) -> None:
        """Write a line on the arrival, handling or loss of a message; the receiving end is its node."""
        self._put(
            TraceRecord(
                ns=ns, what=what, node=sent.target, peer=sent.source, number=sent.number, type=_type(sent.message)
            )
        )

    def _write(self, record: TraceRecord) -> None:
        if self._is_inside(record.ns):
            self._put(record)
        elif self._is_before:
            self._remember(record)

    def _remember(self, record: TraceRecord) -> None:
        """Keep an ongoing condition from before the window."""
        for begin, end in _ENDS.items():
            if record.what == begin:
                self._in_force[begin, str(record.node)] = record
            elif record.what == end:
                self._in_force.pop((begin, str(record.node)), None)
        if record.what == "fault":
            if record.note == "begin":
                self._in_force["fault", str(record.number)] = record
            elif record.note == "end":
                self._in_force.pop(("fault", str(record.number)), None)

    def _is_inside(self, ns: int) -> bool:
        if self._is_before and ns >= self._window.from_ns:
            self._is_before = False
            for record in self._in_force.values():
                self._put(record)
        return self._window.from_ns <= ns <= self._window.to_ns

    def _put(self, record: TraceRecord) -> None:
        try:
            line = self._encode(record)
        except (OverflowError, TypeError, ValueError):  # JSON has no such number or text, but the line must be written.
            line = self._encode(msgspec.structs.replace(record, fields=ascii(record.fields)))
        self._file.write(line + b"\n")

    def _now_ns(self) -> int:
        assert self._loop is not None, "watch comes first"
        return self._loop.now_ns


class _Port(Port):
    """A port that reports its sends; its end reports arrivals."""

    def __init__(self, links: Links, address: NodeId, end: End, tracer: Tracer) -> None:
        super().__init__(links, address, _End(end, tracer))
        self._tracer = tracer

    def send(self, to: NodeId, message: Message) -> Fifo | Datagrams:
        pipe = super().send(to, message)
        self._tracer.sent(pipe, message)
        return pipe


class _End:
    """An end that reports arrivals."""

    def __init__(self, end: End, tracer: Tracer) -> None:
        self._end, self._tracer = end, tracer
        self.closed, self.drained = end.closed, end.drained

    def receive(self, pipe: Unread, message: Message) -> None:
        assert isinstance(pipe, Fifo | Datagrams)  # There are no other kinds.
        self._tracer.arrived(pipe, message)
        self._end.receive(pipe, message)


class _Machine:
    """A machine that reports the events that it handles."""

    def __init__(self, machine: Machine, node: NodeId, tracer: Tracer) -> None:
        self._machine, self._node, self._tracer = machine, node, tracer
        self.dump = machine.dump

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._tracer.note(self._node, "start")
        self._machine.recover(durable, settings, context)

    def handle(self, event: Event, context: Context) -> None:
        self._tracer.handled(self._node, event)
        self._machine.handle(event, context)


class _Disk(Disk):
    """A disk that reports its writes, and when they become durable."""

    def __init__(self, stream: Stream, node: NodeId, tracer: Tracer) -> None:
        super().__init__(stream)
        self._node, self._tracer = node, tracer

    def append(self, log: str, record: Message) -> None:
        super().append(log, record)
        self._tracer.note(self._node, "append", number=self.written, type_=log, fields=record)

    def truncate(self, log: str, index: int) -> None:
        super().truncate(log, index)
        self._tracer.note(self._node, "truncate", number=self.written, type_=log, fields={"index": index})

    def put(self, key: str, value: Message) -> None:
        super().put(key, value)
        self._tracer.note(self._node, "put", number=self.written, type_=key, fields=value)

    def begin_sync(self, now_ns: int) -> tuple[int, int]:
        done_ns, upto = super().begin_sync(now_ns)
        self._tracer.note(self._node, "sync", number=upto)
        return done_ns, upto

    def complete_sync(self, upto: int) -> None:
        is_more = upto > self._durable_count  # A crash that loses everything completes nothing.
        super().complete_sync(upto)
        if is_more:
            self._tracer.note(self._node, "durable", number=upto)

    def crash(self, mode: CrashMode) -> int:
        lost = super().crash(mode)
        self._tracer.note(self._node, "crash", note=f"{lost} unsynced writes lost (disk: {mode})")
        return lost


def _type(message: Message) -> str:
    name = type(message).__name__
    return f"{name} {_type(message.body)}" if isinstance(message, Call | Answer) else name


def _of_evidence(evidence: Evidence) -> TraceRecord:
    """A record of the journal as a line of the trace."""
    fields = {
        name: value
        for name in evidence.__struct_fields__
        if name not in {"time_ns", "node", "subscriber", "kind", "phase", "step", "note", "object", "name"}
        and (value := getattr(evidence, name)) not in (None, {}, ())
    }
    match evidence:
        case Invoke():
            return TraceRecord(ns=evidence.time_ns, what="invoke", type=evidence.f, fields=fields)
        case Complete():
            return TraceRecord(
                ns=evidence.time_ns, what="complete", peer=evidence.node, type=evidence.outcome, fields=fields
            )
        case StreamEvent(subscriber=node, kind=kind):
            return TraceRecord(ns=evidence.time_ns, what="event", node=node, type=kind, fields=fields)
        case Fault(step=step, kind=kind, phase=phase):
            if evidence.note is not None:
                fields["note"] = evidence.note
            return TraceRecord(ns=evidence.time_ns, what="fault", number=step, type=kind, fields=fields, note=phase)
        case Probe(node=node, name=name):
            return TraceRecord(ns=evidence.time_ns, what="probe", node=node, type=name, fields=fields)
        case State(node=node, object=kind):
            return TraceRecord(ns=evidence.time_ns, what="state", node=node, type=kind, fields=fields)
        case Mark(phase=phase, note=note):
            return TraceRecord(ns=evidence.time_ns, what="mark", type=phase, note=note)
