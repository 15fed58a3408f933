"""Restores and flashbacks, beside the load of large-vs-tick.

A restore shows keys as a backup has them. A flashback brings keys back to an earlier state: from then on they have
other names, k@1 for k, as lists that were read only grow. For each key it reads k, which shows what it undoes, and
appends a number to k@1. Later operations of the group use the new names. `restored` reads what came back.
"""

import msgspec
from msgspec.structs import replace

from harness.core.generators.combinators import Answer, Event, Stagger, TimeLimit, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator, Planned
from harness.core.record import Json, MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.grouped import FinalReads, Groups
from harness.scenario.workloads.options import WorkloadOptions
from harness.scenario.workloads.wide_writes import LARGE_VS_TICK, LIFE, WIDE

FLASHBACK_PERCENT, SHOWN_PERCENT = 5, 30  # The share of flashbacks, one a group at most; that of them and of restores.


class WithFlashbacks(msgspec.Struct, frozen=True):
    """The operations of `source`, mixed with flashbacks and restores of a wide transaction's keys."""

    source: Groups
    dice: Dice
    flashed: tuple[int, int] = (-1, -1)  # The last two groups with a flashback.
    count: int = 0  # Flashbacks until now.

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        group, place = divmod(self.source.number, LIFE)
        (percent, first), dice = self.dice.each_below((100, WIDE))
        if percent < FLASHBACK_PERCENT and place and group not in self.flashed:
            flashed = (self.flashed[1], group)
            after = msgspec.structs.replace(self, dice=dice, flashed=flashed, count=self.count + 1)
            return planned(context, _flashback(group, -1 - self.count)), after
        if percent < SHOWN_PERCENT:
            after = msgspec.structs.replace(self, dice=dice)
            return planned(context, self._shown(max(0, group - percent % 2), first)), after
        answer = self.source.op(context)
        assert answer is not None  # `source` never ends.
        assert isinstance(answer[0], Planned)
        assert isinstance(answer[1], Groups)
        op = answer[0]
        if group in self.flashed:
            op = replace(op, mops=tuple(_renamed(mop, group) for mop in op.mops or ()))
        return op, msgspec.structs.replace(self, source=answer[1], dice=dice)

    def _shown(self, group: int, first: int) -> Invocation:
        begin = _first(group)
        if group in self.flashed and first % 2:
            names: list[Json] = [_after(key) for key in range(begin, begin + WIDE)]
            return Invocation(f="restored", value=[names])
        return Invocation(f="restore", value=[[begin + first, begin + (first + 3) % WIDE]])

    def update(self, context: Context, event: Event) -> Generator:
        return self


def restores(options: WorkloadOptions) -> Workload:
    """The load of large-vs-tick with restores and flashbacks. At the end all keys are read, under both names."""
    groups = Groups(LARGE_VS_TICK, "none", Dice.named(options.seed, "workload-large-vs-tick"))
    source = WithFlashbacks(groups, Dice.named(options.seed, "workload-restores"))
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(
        name="restores",
        load=load,
        final=FinalReads(load, LARGE_VS_TICK, "none", renamed=_after),
        types=("txn", "restore", "restored"),  # A flashback succeeded if what it restored was read.
        checks=("list-append",),
    )


def _flashback(group: int, number: int) -> Invocation:
    keys = range(_first(group), _first(group) + WIDE)
    reads = (MicroOp("r", key) for key in keys)
    return Invocation(f="flashback", mops=(*reads, *(MicroOp("append", _after(key), number) for key in keys)))


def _renamed(mop: MicroOp, group: int) -> MicroOp:
    """The micro-operation, on the new name of its key if the flashback of that group gave it one."""
    key = mop.key
    if isinstance(key, int) and 0 <= key - _first(group) < WIDE:
        return MicroOp(mop.f, _after(key), mop.value, lock=mop.lock)
    return mop


def _first(group: int) -> int:
    return group * LARGE_VS_TICK.span


def _after(key: int) -> str:
    """The name of that key after a flashback."""
    return f"{key}@1"
