"""Loads over groups of keys, each replaced by the next: the common form of the simple workloads.

Operation number n uses group n // life, whose keys are new. So lists stay short, each group has its own small history,
and final reads show the final state of each. Each operation is drawn; none depends on the system's answers. If a
workload's transactions write a single row, some additional ones write two keys of their own: only these test promises
about whole transactions.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from harness.core.generators.combinators import Answer, Event, Stagger, TimeLimit, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.promises import Promise
from harness.core.record import MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.list_append import next_of, planned_key_count
from harness.scenario.workloads.options import WorkloadOptions

Locking = Literal["none", "locked"]  # "locked": reads declare a lock, and all locks are held until commit.
DRAWS = 4
PAIR_PERCENT = 12  # Operations that write a pair of keys in addition to the workload's.
PAIR = 2


class Turn(NamedTuple):
    """The inputs of one operation. `place` counts the operations of its group."""

    number: int
    group: int
    place: int
    keys: tuple[int, ...]
    percent: int  # A drawn number below 100.
    picks: tuple[int, ...]  # Drawn numbers below the number of keys.
    locking: Locking

    def reads(self, keys: tuple[int, ...], written: tuple[int, ...] = ()) -> tuple[MicroOp, ...]:
        """Reads of those keys. Under locks, a key in `written` is locked exclusively at once."""
        if self.locking == "none":
            return tuple(MicroOp("r", key) for key in keys)
        return tuple(MicroOp("r", key, lock="exclusive" if key in written else "shared") for key in keys)


class Design(NamedTuple):
    """A workload over groups of `size` keys, each group used `life` times, with the promises that it implies.

    `has_pairs`: each group has two more keys, which are sometimes written together.
    """

    check: str
    size: int
    life: int
    mops: Callable[[Turn], tuple[MicroOp, ...]]
    promises: tuple[Promise, ...]
    has_pairs: bool = True

    @property
    def span(self) -> int:
        """The number of keys of a group, including its pair."""
        return self.size + (PAIR if self.has_pairs else 0)


def grouped(name: str, design: Design, locking: Locking, options: WorkloadOptions) -> Workload:
    """The workload as an open loop of `rate_per_s`. At the end each group is read whole until that succeeds."""
    source = Groups(design, locking, Dice.named(options.seed, f"workload-{design.check}"))
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(
        name=name,
        load=load,
        final=FinalReads(load, design, locking),
        types=("txn",),
        checks=("list-append", design.check),
        promises=design.promises,
    )


def promise(design: str, number: int, text: str, *forbids: str, check: str | None = None) -> Promise:
    """A promise that a workload implies for any system that offers it."""
    source = f"harness/scenario/workloads/{design.replace('-', '_')}.py"
    return Promise(id=f"{design.upper()}-{number}", text=text, source=source, forbids=forbids, check=check or design)


class Groups(msgspec.Struct, frozen=True, eq=False):
    """An endless source of transactions, one group after the other. It equals only itself: see `next_of`."""

    design: Design
    locking: Locking
    dice: Dice
    number: int = 0

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        mops, after = next_of(self)
        return planned(context, Invocation(f="txn", mops=mops)), after

    def update(self, context: Context, event: Event) -> Generator:
        return self

    def transaction(self) -> "tuple[tuple[MicroOp, ...], Groups]":
        """The next transaction, and the source after it."""
        design = self.design
        drawn, dice = self.dice.each_below((100, 100, *[design.size] * DRAWS))
        group, place = divmod(self.number, design.life)
        first = group * design.span
        after = Groups(design, self.locking, dice, self.number + 1)
        if design.has_pairs and drawn[0] < PAIR_PERCENT:
            pair = range(first + design.size, first + design.span)
            return tuple(MicroOp("append", key, self.number) for key in pair), after
        turn = Turn(
            number=self.number,
            group=group,
            place=place,
            keys=tuple(range(first, first + design.size)),
            percent=drawn[1],
            picks=tuple(drawn[2:]),
            locking=self.locking,
        )
        return design.mops(turn), after


class FinalReads(msgspec.Struct, frozen=True):
    """Reads of all keys that `load` uses if it is never late: those of a group at once, then its pair.

    `renamed`: a second name of each key, to be read as well.
    """

    load: Generator
    design: Design
    locking: Locking
    renamed: Callable[[int], str] | None = None

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        size, span = self.design.size, self.design.span
        groups = -(-planned_key_count(self.load) // span)
        reads = (
            self._read(range(group * span + begin, group * span + end))
            for group in range(groups)
            for begin, end in ((0, size), (size, span))
            if begin < end
        )
        return EachUntilOk(tuple(reads), FINAL_PAUSE_NS).op(context)

    def _read(self, keys: Sequence[int]) -> Invocation:
        lock = "shared" if self.locking == "locked" else None
        names = (*keys, *(map(self.renamed, keys) if self.renamed is not None else ()))
        return Invocation(f="txn", mops=tuple(MicroOp("r", key, lock=lock) for key in names))

    def update(self, context: Context, event: Event) -> Generator:
        return self
