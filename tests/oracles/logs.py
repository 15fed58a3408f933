"""The definitions of the check of logs, word for word: every pair of messages, every pair of operations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from harness.core.columns import FAIL, INFO, OK


@dataclass(frozen=True, slots=True)
class Message:
    """One message, of one log; `offset` is None where nobody said it."""

    key: str
    value: int
    offset: int | None


@dataclass(frozen=True, slots=True)
class Step:
    """An operation: what it sent and polled; or the logs that it chose to poll from."""

    op: int
    process: int
    outcome: int
    sent: tuple[Message, ...] = ()
    polled: tuple[Message, ...] = ()
    is_poll: bool = False
    chosen: frozenset[str] | None = None


@dataclass(slots=True)
class World:
    """All operations, and how often they are wrong."""

    steps: Sequence[Step]
    counts: dict[str, int] = field(default_factory=dict)

    def judge(self) -> dict[str, int]:
        """How often each anomaly occurs; those that do not are left out. Cycles count as one."""
        for name, found in (
            ("inconsistent-offsets", self._conflicts()),
            ("duplicate-write", self._twice()),
            ("lost-write", self._lost()),
            ("G1a", self._aborted()),
            ("precommitted-read", self._own()),
            ("G0", [True][: len(self._circles())]),
            ("G1c", [True][: self._has_read_circle()]),
        ):
            self.counts[name] = len(list(found))
        self._neighbours()
        self._successors()
        return {name: count for name, count in self.counts.items() if count}

    # What is known

    def committed(self) -> list[tuple[Step, Message]]:
        proven = {(m.key, m.value) for s in self.steps if s.outcome == OK for m in s.polled}
        sure = [
            s
            for s in self.steps
            if s.outcome == OK or (s.outcome == INFO and any((m.key, m.value) in proven for m in s.sent))
        ]
        return [(s, m) for s in sure for m in s.sent]

    def is_failed(self, message: Message) -> bool:
        senders = [s for s in self.steps for m in s.sent if (m.key, m.value) == (message.key, message.value)]
        return bool(senders) and all(s.outcome == FAIL for s in senders)

    def sightings(self) -> set[tuple[str, int, int]]:
        polled = [m for s in self.steps for m in s.polled if not self.is_failed(m)]
        result = [m for _, m in self.committed()] + polled
        return {(m.key, m.offset, m.value) for m in result if m.offset is not None}

    def offset(self, message: Message) -> int | None:
        """Where the message stands, if that is known and anything stands there."""
        seen = self.sightings()
        own = [offset for key, offset, value in seen if (key, value) == (message.key, message.value)]
        offset = message.offset if message.offset is not None else own[0] if len(own) == 1 else None
        return offset if any((key, at) == (message.key, offset) for key, at, _ in seen) else None

    def unseen(self) -> int:
        polled = {(m.key, m.value) for s in self.steps for m in s.polled}
        return sum((m.key, m.value) not in polled for _, m in self.committed())

    # What is wrong

    def _conflicts(self) -> set[tuple[str, int]]:
        seen = self.sightings()
        return {one[:2] for one in seen for other in seen if one[:2] == other[:2] and one != other}

    def _twice(self) -> set[tuple[str, int]]:
        seen = self.sightings()
        return {(k, v) for k, o, v in seen for key, offset, value in seen if (key, value) == (k, v) and offset != o}

    def _lost(self) -> Iterator[Message]:
        polled = [m for s in self.steps for m in s.polled]
        for _, sent in self.committed():
            is_passed = any(
                m.key == sent.key and m.offset is not None and sent.offset is not None and m.offset >= sent.offset
                for m in polled
            )
            if is_passed and not any((m.key, m.value) == (sent.key, sent.value) for m in polled):
                yield sent

    def _aborted(self) -> Iterator[Message]:
        return (m for s in self.steps if s.outcome == OK for m in s.polled if self.is_failed(m))

    def _own(self) -> Iterator[Message]:
        for s in (s for s in self.steps if s.outcome == OK):
            for m in s.polled:
                if any((o.key, o.value) == (m.key, m.value) for o in s.sent) and not self.is_failed(m):
                    yield m

    def _neighbours(self) -> None:
        """Messages of one log that one operation polls, or sends, one after the other."""
        sure = [s for s, _ in self.committed()]
        for s in self.steps:
            for is_meant, messages, skip, back in (
                (s.outcome == OK, s.polled, "internal-poll-skip", "internal-nonmonotonic-poll"),
                (s in sure, s.sent, "internal-send-skip", "internal-nonmonotonic-send"),
            ):
                for key in {m.key for m in messages} if is_meant else ():
                    for one, other in pairwise(m for m in messages if m.key == key):
                        self._compare(one, other, skip, back)

    def _successors(self) -> None:
        """Of each operation the first message of a log, with the last one of its process's operation before."""
        for place, s in enumerate(self.steps):
            for key in {m.key for m in s.polled} if s.outcome == OK else ():
                before = self._before(place, key, is_send=False)
                if before is not None:
                    first = next(m for m in s.polled if m.key == key)
                    self._compare(before, first, "poll-skip", "nonmonotonic-poll")
            for key in {m.key for m in s.sent} if s.outcome == OK else ():
                before = self._before(place, key, is_send=True)
                if before is not None:
                    self._compare(before, next(m for m in s.sent if m.key == key), None, "nonmonotonic-send")

    def _before(self, place: int, key: str, *, is_send: bool) -> Message | None:
        """The last message of that log before, unless the consumer may be elsewhere by now."""
        for s in reversed(self.steps[:place]):
            if s.process != self.steps[place].process:
                continue
            if s.chosen is not None and key not in s.chosen:
                return None
            if s.outcome == INFO and s.is_poll and s.chosen is None and not is_send:
                return None
            own = [m for m in (s.sent if is_send else s.polled) if m.key == key]
            if s.outcome == OK and own:
                return own[-1]
        return None

    def _compare(self, one: Message, other: Message, skip: str | None, back: str) -> None:
        low, high = self.offset(one), self.offset(other)
        if low is None or high is None:
            return
        if high <= low:
            self.counts[back] = self.counts.get(back, 0) + 1
        elif skip is not None and any(key == one.key and low < at < high for key, at, _ in self.sightings()):
            self.counts[skip] = self.counts.get(skip, 0) + 1

    # Cycles

    def _writer(self, key: str, value: int) -> int | None:
        writers = [s.op for s, m in self.committed() if (m.key, m.value) == (key, value)]
        return writers[-1] if writers else None

    def follows(self) -> set[tuple[int, int]]:
        """Who sent what stands right behind what another one sent, as far as offsets hold one value."""
        conflicts = self._conflicts()
        result: set[tuple[int, int]] = set()
        for log in {key for key, _, _ in self.sightings()}:
            held = sorted((at, value) for key, at, value in self.sightings() if key == log)
            writers = [self._writer(log, value) for at, value in held if (log, at) not in conflicts]
            known = [writer for writer in writers if writer is not None]
            result |= {(one, other) for one, other in pairwise(known) if one != other}
        return result

    def sees(self) -> set[tuple[int, int]]:
        """Who polled what another one sent."""
        pairs = {(self._writer(m.key, m.value), s.op) for s in self.steps if s.outcome == OK for m in s.polled}
        return {(writer, reader) for writer, reader in pairs if writer is not None and writer != reader}

    def _circles(self) -> set[int]:
        """Who stands in a circle of sends."""
        edges = self.follows()
        return {before for before, after in edges if _leads(edges, after, before)}

    def _has_read_circle(self) -> bool:
        """Is there a circle of sends and polls, apart from circles of sends? These imply it."""
        edges, known = self.follows() | self.sees(), self._circles()
        return any(
            _leads(edges, reader, writer)
            and not any(_leads(edges, writer, op) and _leads(edges, op, writer) for op in known)
            for writer, reader in self.sees()
        )


def _leads(edges: set[tuple[int, int]], start: int, end: int) -> bool:
    reached, fresh = {start}, {start}
    while fresh:
        fresh = {after for before, after in edges if before in fresh} - reached
        reached |= fresh
    return end in reached
