"""Options of the check of transactions."""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from checkers.columns.facts import Facts
from checkers.graph import certificate
from checkers.history.names import PLAIN, Names
from checkers.history.registers import EMPTY, ORDER, Initial, Order
from checkers.history.stretches import Stretches, Weights
from checkers.transactions.inferred import Rules
from checkers.words import models
from checkers.words.transactional import REALTIME, UPDATE

RESIDUAL_EDGES: Final = 1_000_000  # If there are more, only a part is searched, and the answer may be unknown.


class Options(Struct, frozen=True, kw_only=True):
    """Options of the check.

    If `prohibited` is given, these anomalies and what implies them count, whatever the model: a set for each promise.
    """

    model: str = models.DEFAULT
    prohibited: tuple[frozenset[str], ...] | None = None
    name: Names = PLAIN
    order: Order = ORDER  # The sources of the order of a register's versions.
    initial: Initial = EMPTY  # What registers held at first.
    is_empty_unknown: bool = False  # As in Elle: a history without any dependency gets no verdict.
    slice_ids: int = certificate.SLICE_IDS
    partitions: int | None = None
    residual_edges: int = RESIDUAL_EDGES
    shared: Facts | None = None  # Facts of the history, if other checks need its dependencies, too.
    stretches: Stretches | None = None  # The history has several generations at once: cycles leave the check undecided.
    has_real_time: bool = True  # If not, only the order inside each process is known.

    def rules(self) -> Rules:
        """What dependencies follow from besides the operations."""
        weights = Weights(self.stretches)
        return Rules(order=self.order, initial=self.initial, weights=weights, partitions=self.partitions)

    @property
    def out_of_sight(self) -> frozenset[str]:
        """The anomalies that need real time, if it is not known: they can be neither found nor excluded."""
        return frozenset() if self.has_real_time else REALTIME

    def forbidden(self) -> frozenset[str]:
        """All anomalies that count and are in sight. Raises ScenarioError if there is no such model."""
        return frozenset[str]().union(*self._by_promise()) - self.out_of_sight

    def undecided(self, found: Collection[str], *, in_sight: bool = True) -> frozenset[str]:
        """The anomalies that count for promises that none of those found breaks: those in sight, or the others."""
        every = frozenset[str]().union(*(each for each in self._by_promise() if each.isdisjoint(found)))
        return every - self.out_of_sight if in_sight else every & self.out_of_sight

    def _by_promise(self) -> list[frozenset[str]]:
        """The anomalies that count, by promise. Where a case of one counts that a promise forbids, it is not sought."""
        if self.prohibited is None:
            sets = [models.prohibited((self.model,))]
        else:
            sets = [models.prohibited((), each) for each in self.prohibited]
        return [each - {UPDATE} if "G-single" in each else each for each in sets]
