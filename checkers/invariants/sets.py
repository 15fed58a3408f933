"""Sets: every added element stays, and nothing else appears.

*set-full* determines for each element when it was *known*: at the end of its add or of the first read that showed it,
whichever came first. It also determines, of all reads of its set, the last to begin that showed it and the last to
begin that did not. The element is
- lost, if the last read without it began after the last one with it, and after it was known;
- stale, if that last read without it began after it was known, but a later one shows it again;
- unexpected, if it is read though no operation tried to add it; failed, if it is read though every add of it failed.
Plain *set* checks all this for the read that ended last alone; then nothing can be stale. Both report an element that
one read shows twice as a duplicate. Reads that overlap the add of an element may show it or not.

Witnesses: lost-element and stale-element, elements that a read had to show because it began after they were known;
duplicate-elements, unexpected-element and failed-element, elements that were read (for the last, those of failed adds).
Source: the definitions of set and set-full in Jepsen's checkers.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.engine.protocol import When
from checkers.history.troubles import Trouble, judgement
from checkers.invariants.members import Members, Put, Read, collections, is_failed
from checkers.invariants.operations import Op, Token, invariant, listed, shown
from checkers.words.anomalies import SHARED, Declared
from checkers.words.transactional import TRANSACTIONAL
from harness.core.columns import NEVER, Bools, Int64s
from harness.core.verdict import Judgement

SET: Final = "set"
SET_FULL: Final = "set-full"
LOST, STALE, UNEXPECTED = "lost-element", "stale-element", "unexpected-element"
FAILED, TWICE = "failed-element", "duplicate-elements"
ANOMALIES: Final[Declared] = {
    LOST: SHARED[LOST],
    STALE: "A read of a set misses an element that was known when it began; a later one shows it.",
    UNEXPECTED: SHARED[UNEXPECTED],
    FAILED: "A set shows an element whose add had certainly failed.",
    TWICE: TRANSACTIONAL[TWICE],
}
NONE: Final = -1


class Lives(Struct, frozen=True):
    """For each element that an operation tried to add: its adds and reads.

    Arrays of one length; NONE stands for no read.
    """

    elements: list[Token]
    adds: list[Put]  # For each element the first add that did not fail, else the first one.
    known: Int64s  # The first index after it was known, or NEVER.
    last_present: Int64s  # Index of the last read that shows it,
    last_absent: Int64s  # and of the last one that does not.

    @property
    def is_missed(self) -> Bools:
        """True for elements that were already known when a read without them began."""
        missed: Bools = self.last_absent >= self.known
        return missed

    @property
    def is_stable(self) -> Bools:
        """True for elements whose last read with them began after the last one without them."""
        stable: Bools = self.last_present > self.last_absent
        return stable


def judged(operations: Sequence[Op], *, is_last_only: bool = False) -> Judgement:
    """The judgement of the reads of sets; with `is_last_only` of the read of each set that ended last."""
    checker = SET if is_last_only else SET_FULL
    witnesses = Counter(dict.fromkeys(ANOMALIES, 0))
    facts = Counter(dict.fromkeys(("elements", "stable", "never read"), 0))
    troubles: list[Trouble] = []
    for name, members in collections(operations).items():
        last = sorted(members.reads, key=lambda read: (read.after, read.ended))[-1:]
        chosen = Members(members.puts, last) if is_last_only else members
        found = lives(chosen)
        required = _required(found, chosen.reads)
        witnesses.update({LOST: required, STALE: required if len(chosen.reads) > 1 else 0})
        troubles += _gone(name, found)
        troubles += _strange(name, found, chosen.reads, witnesses)
        facts["elements"] += len(found.elements)
        facts["stable"] += int(np.count_nonzero(found.is_stable))
        facts["never read"] += int(np.count_nonzero(~found.is_stable & ~found.is_missed))
    return judgement(checker, ANOMALIES, troubles, witnesses, facts={**facts})


def lives(members: Members) -> Lives:
    """The adds and reads of each element. O(elements read), and a pass over the distinct elements."""
    first: dict[Token, Put] = {}
    known_by_add: dict[Token, int] = {}
    for put in members.puts:
        known = first.get(put.element)
        if known is None or (is_failed(known) and not is_failed(put)):
            first[put.element] = put
        known_by_add[put.element] = min(known_by_add.get(put.element, NEVER), put.after)
    place = {element: number for number, element in enumerate(first)}
    known_since = np.array([known_by_add[element] for element in first], np.int64)
    present, absent = np.full(len(first), NONE, np.int64), np.full(len(first), NONE, np.int64)
    is_shown = np.zeros(len(first), np.bool_)
    undecided = np.arange(len(first))  # Those that every read so far has shown.
    for read in reversed(members.reads):
        seen = np.array([place[each] for each in dict.fromkeys(read.elements) if each in place], np.int64)
        present[seen] = np.maximum(present[seen], read.number)
        known_since[seen] = np.minimum(known_since[seen], read.after)
        is_shown[seen] = True
        kept = is_shown[undecided]
        absent[undecided[~kept]] = read.number
        undecided = undecided[kept]
        is_shown[seen] = False
    return Lives(list(first), list(first.values()), known_since, present, absent)


def _required(found: Lives, reads: Sequence[Read]) -> int:
    """The number of elements that were known when some read began."""
    last = reads[-1].number if reads else NONE
    return int(np.count_nonzero(found.known <= last))


def _gone(name: Token, found: Lives) -> Iterator[Trouble]:
    """Violations: lost elements, then stale ones."""
    for place in np.flatnonzero(found.is_missed & ~found.is_stable).tolist():
        add, absent, present = found.adds[place], int(found.last_absent[place]), int(found.last_present[place])
        last = f", and T{present} was the last to show it" if present != NONE else ""
        text = (
            f"{_was_known(name, found, place)}{last}, but T{absent}, which began later, does not show it, nor does "
            "any read after it."
        )
        ops = (add.number, absent) if present == NONE else (add.number, present, absent)
        yield Trouble(LOST, text, (str(name), str(add.element)), ops)
    for place in np.flatnonzero(found.is_missed & found.is_stable).tolist():
        add, absent, present = found.adds[place], int(found.last_absent[place]), int(found.last_present[place])
        text = f"{_was_known(name, found, place)}, but T{absent}, which began later, does not show it; T{present} does."
        yield Trouble(STALE, text, (str(name), str(add.element)), (add.number, absent, present))


def _was_known(name: Token, found: Lives, place: int) -> str:
    add = found.adds[place]
    where = f"{shown(add.element)} in {shown(name)}"
    if int(found.known[place]) == add.after:
        return f"T{add.number} had added {where}"
    return f"{where}, from T{add.number}, had been read"


def _strange(name: Token, found: Lives, reads: Sequence[Read], witnesses: Counter[str]) -> Iterator[Trouble]:
    """Violations: elements that no operation added, that only failed ones added, or that one read shows twice."""
    adds = dict(zip(found.elements, found.adds, strict=True))
    reported: set[Token] = set()
    for read in reads:
        once = dict.fromkeys(read.elements)
        witnesses.update({UNEXPECTED: len(once), TWICE: len(once)})
        if len(once) < len(read.elements):
            counts = Counter(read.elements)
            doubled = [element for element in once if counts[element] > 1]
            text = f"T{read.number} read {shown(name)} with {listed(doubled)} in it more than once."
            yield Trouble(TWICE, text, (str(name), read.number), (read.number,))
        for element in once:
            add = adds.get(element)
            if element in reported or (add is not None and not is_failed(add)):
                continue
            reported.add(element)
            if add is None:
                text = f"T{read.number} read {shown(element)} in {shown(name)}, which nobody tried to put there."
                yield Trouble(UNEXPECTED, text, (str(name), str(element)), (read.number,))
            else:
                text = f"T{read.number} read {shown(element)} in {shown(name)}, but T{add.number}, its add, had failed."
                yield Trouble(FAILED, text, (str(name), str(element)), (add.number, read.number))
    witnesses[FAILED] += sum(is_failed(add) for add in found.adds) if reads else 0


CHECKS: Final = (
    invariant(SET_FULL, ANOMALIES, judged),
    invariant(SET, ANOMALIES, partial(judged, is_last_only=True), When.NAMED),
)
