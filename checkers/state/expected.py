"""The transactions that a state must show: after each restart of the whole cluster, and at the end of a run.

A restart restores what was saved up to a position, and no more. A transaction is *kept* by a state if no restart since
its own generation left it out, and *void* if one did. Each element is appended once, so a state shows which
transactions it contains.

An operation of unclear outcome has an epoch if a stream delivered one of its elements: then it did happen. Otherwise a
state may contain it or not, but only as a whole.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from pathlib import Path
from typing import Final

from checkers.history.generations import Restart, restarts
from checkers.history.names import Dictionary, Name, epoch_name
from checkers.history.tables import State, Transaction, rows, transactions
from harness.core.columns import FAIL, INFO, NEVER, OK
from harness.core.promises import Bounds

Element = tuple[int, int]  # A key and what was appended to it, as ids.
NO_GROUP: Final = -1


class Fate(Enum):
    """The part of a transaction that a state must show."""

    KEPT = "all of it"
    VOID = "nothing of it, though it had happened"
    FAILED = "nothing of it, for it never happened"
    UNCLEAR = "all of it, or nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A transaction, and its epoch and generation as far as they are known."""

    transaction: Transaction
    epoch: int | None
    earliest: int  # The first generation in which it may have happened,
    home: int | None  # and the one in which it did, if that is known.
    end_seq: int  # By that record it had ended: its answer, or the event of an unclear one; NEVER if there is neither.

    @property
    def is_acknowledged(self) -> bool:
        """True if the client received an ok."""
        return self.transaction.outcome == OK


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The part of a transaction that a state shows. `absent` has only elements whose keys the state knows."""

    claim: Claim
    fate: Fate
    present: tuple[Element, ...]
    absent: tuple[Element, ...]

    @property
    def is_whole(self) -> bool:
        """True if the state knows the keys of all its elements."""
        return len(self.present) + len(self.absent) == len(self.claim.transaction.writes)


class Content:
    """A state: the elements of each key, merged over all nodes that showed theirs.

    It knows a key if a node of the key's group showed something. A key that no dump of the run shows has no known
    group: it is known only if every group showed something. If nodes did not show all that they hold (`is_partial`),
    only the keys that appear are known.
    """

    def __init__(
        self, dumps: Iterable[State], groups: "Groups", names: Dictionary, *, is_partial: bool = False
    ) -> None:
        self._groups, self._is_partial = groups, is_partial
        self._shown: dict[int, bool] = {}
        self.elements: dict[int, dict[int, bool]] = {}
        self.twice: list[tuple[str, Element]] = []
        for dump in dumps:
            elements = names.identities(dump.value)
            self._shown[groups.of_node(dump.node)] = True
            self.elements.setdefault(dump.key_id, {}).update(dict.fromkeys(elements, True))
            if len(set(elements)) < len(elements):
                doubled = next(each for each in elements if elements.count(each) > 1)
                self.twice.append((dump.node, (dump.key_id, doubled)))

    def has(self, element: Element) -> bool:
        """True if the state contains the element."""
        return element[1] in self.elements.get(element[0], {})

    def knows(self, key: int) -> bool:
        """True if the elements of the key would have been seen."""
        if self._is_partial:
            return key in self.elements
        group = self._groups.of_key(key)
        if group == NO_GROUP:
            return all(self._shown.get(each, False) for each in self._groups.numbers)
        return self._shown.get(group, False)

    def strangers(self, claims: "Claims") -> list[Element]:
        """Elements that no operation of the run wrote."""
        return [
            (key, element)
            for key, elements in sorted(self.elements.items())
            for element in elements
            if (key, element) not in claims.writers
        ]


class Groups:
    """The nodes that hold the same data, and the keys of each group, as all dumps of a run show them."""

    def __init__(self, bounds: Bounds, dumps: Iterable[State]) -> None:
        self._of_node = {node: number for number, group in enumerate(bounds.groups) for node in group}
        self.numbers = tuple(range(len(bounds.groups))) or (0,)
        self._of_key: dict[int, int] = {}
        for dump in dumps:
            self._of_key.setdefault(dump.key_id, self.of_node(dump.node))

    def of_node(self, node: str) -> int:
        """The number of the node's group; 0 for every node if no groups are declared."""
        return self._of_node.get(node, 0)

    def of_key(self, key: int) -> int:
        """The number of the key's group; NO_GROUP if no dump shows the key."""
        return self._of_key.get(key, NO_GROUP)


class Claims:
    """All transactions of a run, and how much of each a state must show. Raises HistoryError on a damaged history."""

    def __init__(self, history: Path, bounds: Bounds) -> None:
        self.restarts: tuple[Restart, ...] = restarts(history)
        self.bits = bounds.saved_bits or 0
        self.shown = epoch_name(bounds.saved_bits or None)
        wrote = transactions(history)
        self.writers: Mapping[Element, Transaction] = {each: t for t in wrote for each in t.writes}
        self._begun = [restart.seq for restart in self.restarts]
        firsts = [restart.first_epoch for restart in reversed(self.restarts)]
        self._first_epochs = list(accumulate(firsts, min))[::-1]
        delivered = self._delivered(history) if any(t.outcome == INFO for t in wrote) else {}
        self.all = tuple(self._claim(transaction, delivered) for transaction in wrote)

    def after(self, number: int) -> Iterator[tuple[Claim, Fate]]:
        """Transactions that may be in the state after `number` restarts, each with its required fate."""
        for claim in self.all:
            if claim.earliest < number and (claim.home is None or claim.home < number):
                yield claim, self._fate(claim, number)

    def at_end(self) -> Iterator[tuple[Claim, Fate]]:
        """All transactions, each with its required fate in the last state of the run."""
        for claim in self.all:
            yield claim, self._fate(claim, len(self.restarts))

    def voided(self, claim: Claim, number: int) -> Restart | None:
        """The first of the first `number` restarts that left it out; None if none did."""
        if claim.home is None or claim.epoch is None:
            return None
        passed = self.restarts[claim.home : number]
        return next((restart for restart in passed if claim.epoch >> self.bits > restart.restored), None)

    def _fate(self, claim: Claim, number: int) -> Fate:
        if claim.transaction.outcome == FAIL:
            return Fate.FAILED
        if claim.home is None or (claim.epoch is None and claim.home < number):
            return Fate.UNCLEAR
        return Fate.VOID if self.voided(claim, number) is not None else Fate.KEPT

    def _delivered(self, history: Path) -> dict[Element, tuple[int, int]]:
        """The epoch of each delivered element, and the position of its event in the journal."""
        delivered: dict[Element, tuple[int, int]] = {}
        for row in rows(history, "events", ["seq", "key", "value", "position"], kind=["row"]):
            if row["position"] is not None:
                delivered.setdefault((row["key"], row["value"]), (row["position"], row["seq"]))
        return delivered

    def _claim(self, transaction: Transaction, delivered: Mapping[Element, tuple[int, int]]) -> Claim:
        epoch, end_seq = transaction.epoch, transaction.complete_seq
        if transaction.outcome == INFO:
            epoch, end_seq = next((delivered[each] for each in transaction.writes if each in delivered), (None, NEVER))
        earliest = bisect_left(self._begun, transaction.invoke_seq)
        latest = bisect_left(self._begun, end_seq)
        if epoch is not None:
            # A number that two generations use belongs to the later one, unless that had not begun.
            home: int | None = min(max(bisect_right(self._first_epochs, epoch), earliest), latest)
        else:
            is_certain = transaction.outcome == OK and earliest == latest
            home = earliest if is_certain else None
        return Claim(transaction=transaction, epoch=epoch, earliest=earliest, home=home, end_seq=end_seq)


def sights(claims: Iterable[tuple[Claim, Fate]], content: Content) -> Iterator[Sight]:
    """The part of each transaction that the state shows."""
    for claim, fate in claims:
        writes = claim.transaction.writes
        yield Sight(
            claim=claim,
            fate=fate,
            present=tuple(each for each in writes if content.has(each)),
            absent=tuple(each for each in writes if not content.has(each) and content.knows(each[0])),
        )


def is_fractured(sight: Sight) -> bool:
    """True if one part of it is present and another absent, whatever its fate."""
    return bool(sight.present) and bool(sight.absent)


def wrong(sight: Sight) -> tuple[Element, ...]:
    """The elements that the state wrongly has or lacks, so that later states are not blamed for them again."""
    match sight.fate:
        case Fate.KEPT:
            return sight.absent
        case Fate.UNCLEAR:
            return sight.absent if is_fractured(sight) else ()
        case Fate.VOID | Fate.FAILED:
            return sight.present


def named(elements: Sequence[Element], name: Name) -> str:
    """Elements for people, followed by "is" or "are"."""
    listed = " and ".join(f"{name(key)}'s {name(element)}" for key, element in elements)
    return f"{listed} {'is' if len(elements) == 1 else 'are'}"


def restored(dumps: Sequence[State], number: int) -> list[State]:
    """The rows that nodes showed after the restart of that number."""
    return [dump for dump in dumps if dump.txn == number]
