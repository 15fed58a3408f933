"""A shard: one collection on disk, which is appended to by comparing its upper.

Theory of operation.
1. An append names the upper that its writer expects. If the shard has another one, the append is refused: so of two
   writers that do not know of each other only one goes on.
2. Updates lie between the expected and the new upper. So what is below the upper never changes.
3. An append has a name, its epoch and new upper. A request that comes again is recognised, however much was appended
   since.
"""

from collections.abc import Iterable

from msgspec import Struct

from clusters.materialize.collections import Rows, Update
from clusters.materialize.messages import AtUpper, CompareAndAppend, Mismatch


class Appended(Struct, frozen=True, tag=True):
    """On disk: an append to a shard."""

    shard: str
    expected: int
    new: int
    updates: tuple[Update, ...]
    epoch: int
    at_ns: int


class Since(Struct, frozen=True, tag=True):
    """On disk: the since of a shard."""

    shard: str
    ts: int


class Shard:
    """The shard of that name, with the appends that are on disk."""

    def __init__(self, name: str, appends: Iterable[Appended] = ()) -> None:
        self.name = name
        self.rows = Rows()
        self.history: list[tuple[int, int, int, int]] = []  # For each append both uppers, its epoch, and its time.
        self._done: set[tuple[int, int]] = set()
        for append in appends:
            self._apply(append)

    def append(self, request: CompareAndAppend, now_ns: int) -> tuple[AtUpper | Mismatch, Appended | None]:
        """The answer to a request, and the append to make durable before it is given."""
        if (request.epoch, request.new) in self._done:
            return AtUpper(self.name, self.rows.upper), None
        is_between = all(request.expected <= update.ts < request.new for update in request.updates)
        if request.expected != self.rows.upper or request.new <= self.rows.upper or not is_between:
            return Mismatch(self.name, self.rows.upper), None
        append = Appended(self.name, request.expected, request.new, request.updates, request.epoch, now_ns)
        self._apply(append)
        return AtUpper(self.name, self.rows.upper), append

    def _apply(self, append: Appended) -> None:
        self._done.add((append.epoch, append.new))
        self.history.append((append.expected, append.new, append.epoch, append.at_ns))
        self.rows.add(append.updates, append.new)
