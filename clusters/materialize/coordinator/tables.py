"""A table as its leader sees it: the appends on the way to its shard, and its upper after them.

Theory of operation. Each group commit appends to every table, even without rows, so that all can be read at its
timestamp. The appends of one table follow each other; entries that gather while one is on the way go together.
1. A slow table delays its own writes and nobody else's.
2. An append that meets another upper was overtaken by a new leader, unless it was carried out before: its answer was
   lost. The shard knows that.
"""

from collections.abc import Callable
from typing import NamedTuple

from clusters.materialize import planted
from clusters.materialize.collections import Update
from clusters.materialize.coordinator.reign import Reign
from clusters.materialize.messages import AtUpper, CompareAndAppend, Mismatch
from clusters.materialize.shape import MS
from clusters.parts.procedures import Ask
from clusters.parts.routing import Procedure
from harness.core.machine import Message

SLOW_NS = 300 * MS


class Entry(NamedTuple):
    """Rows of one group commit. `then` is called when they are durable."""

    ts: int
    updates: tuple[Update, ...]
    then: Callable[[], None]


class Table:
    """One table of a reign."""

    def __init__(self, reign: Reign, name: str, upper: int) -> None:
        self.name = name
        self.upper = upper
        self._reign = reign
        self._waiting: list[Entry] = []
        self._is_busy = False

    def push(self, entry: Entry) -> None:
        """Append rows at a timestamp above all earlier ones."""
        self._waiting.append(entry)
        if planted.RESPOND_BEFORE_DURABLE in self._reign.bugs:
            entry.then()
        if not self._is_busy:
            self._is_busy = True
            self._reign.site.procedures.run(self._append())

    def _append(self) -> Procedure[None]:
        reign = self._reign
        while self._waiting and not reign.is_over:
            batch, self._waiting = self._waiting, []
            updates = tuple(update for entry in batch for update in entry.updates)
            request = CompareAndAppend(self.name, self.upper, batch[-1].ts + 1, updates, reign.epoch)
            answer: Message | None = None
            since_ns = reign.site.now_ns()
            while answer is None and not reign.is_over:
                (answer,) = yield Ask(((self.name, request),))
            if reign.site.now_ns() > since_ns + SLOW_NS:
                reign.site.context.sometimes("an append took long")
            if isinstance(answer, Mismatch) and planted.UPPER_MISMATCH_AS_OK in reign.bugs:
                answer = AtUpper(self.name, answer.upper)
            match answer:
                case AtUpper(upper=upper):
                    self.upper = max(upper, request.new)
                    reign.site.context.point("table-appended")
                    for entry in batch:
                        if planted.RESPOND_BEFORE_DURABLE not in reign.bugs:
                            entry.then()
                case Mismatch():
                    reign.end("a table had another upper")
                case _:
                    pass
        self._is_busy = False
