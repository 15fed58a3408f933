"""Registers with reads, writes and compare-and-set: in this workload a single stale answer is a contradiction.

Operation number n uses one of the registers of group n // life, which are new. They hold few values, so that a cas
often finds its expected value, and a lost write is noticed. Some operations are transactions that append to a pair of
lists instead: only these test the promises about transactions, and about the stream of their writes. At the end every
register and every pair is read until that succeeds.
"""

from collections.abc import Iterator

import msgspec

from harness.core.generators.combinators import Answer, Event, Stagger, TimeLimit, all_planned, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.promises import Promise
from harness.core.record import Json, MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.options import WorkloadOptions

NAME = "cas-register"
CHECK = "linearizability"
LIFE = 40  # Operations on each register, on average.
VALUES = 5
TXN_PERCENT, READ_PERCENT, WRITE_PERCENT = 12, 34, 26  # All other operations are cas.
PROMISE = Promise(
    id="CAS-REGISTER",
    text="Each register is linearizable: one order of its operations explains every answer.",
    source="harness/scenario/workloads/cas_register.py",
    forbids=("non-linearizable",),
    check=CHECK,
)


def cas_register(options: WorkloadOptions) -> Workload:
    """The cas-register workload, as an open loop of `rate_per_s`."""
    source = Operations(options.key_count, Dice.named(options.seed, f"workload-{NAME}"))
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(
        name=NAME,
        load=load,
        final=FinalReads(load, options.key_count),
        types=("read", "write", "cas", "txn"),
        checks=("list-append", CHECK),
        promises=(PROMISE,),
    )


class Operations(msgspec.Struct, frozen=True):
    """An endless source of operations, one group of `size` registers after the other."""

    size: int
    dice: Dice
    number: int = 0

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        drawn, dice = self.dice.each_below((100, self.size, VALUES, VALUES))
        group = self.number // (self.size * LIFE)
        invocation = self._invocation(group, *drawn)
        return planned(context, invocation), Operations(self.size, dice, self.number + 1)

    def update(self, context: Context, event: Event) -> Generator:
        return self

    def _invocation(self, group: int, percent: int, place: int, value: int, old: int) -> Invocation:
        if percent < TXN_PERCENT:
            return Invocation(f="txn", mops=tuple(MicroOp("append", key, self.number) for key in _pair(group)))
        key = register(group, place)
        percent -= TXN_PERCENT
        if percent < READ_PERCENT:
            return Invocation(f="read", value=[key, None])
        if percent < READ_PERCENT + WRITE_PERCENT:
            return Invocation(f="write", value=[key, value])
        return Invocation(f="cas", value=[key, [old, value]])


class FinalReads(msgspec.Struct, frozen=True):
    """Reads of all keys that `load` uses if it is never late."""

    load: Generator
    size: int

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        groups = -(-_operation_count(self.load) // (self.size * LIFE))
        return EachUntilOk(tuple(self._reads(groups)), FINAL_PAUSE_NS).op(context)

    def update(self, context: Context, event: Event) -> Generator:
        return self

    def _reads(self, groups: int) -> Iterator[Invocation]:
        for group in range(groups):
            yield Invocation(f="txn", mops=tuple(MicroOp("r", key) for key in _pair(group)))
            for place in range(self.size):
                yield Invocation(f="read", value=[register(group, place), None])


def register(group: int, place: int) -> Json:
    """The key of a register: text, so that it is not taken for a list."""
    return f"r{group}.{place}"


def _pair(group: int) -> range:
    return range(2 * group, 2 * group + 2)


def _operation_count(load: Generator) -> int:
    """The number of operations that the load plans, if a thread is always free."""
    return sum(1 for _ in all_planned(load))
