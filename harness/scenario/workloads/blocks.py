"""Loads for logs of events: single appends, transactions that append blocks of events, and reads of keys.

Operation number n uses the keys of group n // life, which are new: so lists stay short. A transaction appends several
events to some of its keys, so that its events stand one after the other there. A read shows one key: a system need not
have a snapshot of several. At the end each key is read, and then the system is asked if its subscribers have read all
(`drain`), each until it succeeds.

Some loads have more: `status` asks for the status of a client's last transactions; `truncate` takes away what is old,
so that nothing is read at the end; `seal` ends the log at two thirds of the load, and what comes after it fails;
`checkpoint` marks how far subscribers have read, and `restore` has them begin again there.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from harness.core.generators.combinators import Answer, Event, Stagger, TimeLimit, all_planned, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.record import MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.options import WorkloadOptions

MOST = 6  # Events of one transaction.
FEWEST = 2


class Shares(NamedTuple):
    """The shares of transactions and of reads, in percent; all others are single appends."""

    txns: int
    reads: int
    keys: int  # Of a group.
    life: int  # Operations of a group.
    statuses: int = 0
    truncate_every: int = 0  # Operations between two truncations; 0: never.
    checkpoint_every: int = 0
    restore_every: int = 0
    is_sealed: bool = False


BLOCKS = Shares(txns=35, reads=20, keys=6, life=72)
SEQUENCES = Shares(txns=5, reads=15, keys=4, life=80)
LEASES = Shares(txns=45, reads=10, keys=6, life=60, statuses=20)
RETENTION = Shares(txns=20, reads=30, keys=4, life=24, truncate_every=9)
REWINDS = Shares(txns=30, reads=20, keys=6, life=72, checkpoint_every=30, restore_every=100)
SEALED = Shares(txns=40, reads=20, keys=6, life=72, is_sealed=True)


class Blocks(msgspec.Struct, frozen=True):
    """An endless source of operations, one group of keys after the other."""

    shares: Shares
    dice: Dice
    seal_ns: int | None = None  # The time of the next seal.
    number: int = 0

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        shares = self.shares
        drawn, dice = self.dice.each_below((100, MOST - FEWEST + 1, *[shares.keys] * MOST))
        first = self.number // shares.life * shares.keys
        keys = [first + each for each in drawn[2:]]
        f = "txn"
        mops: list[MicroOp] = []
        seal_ns = self.seal_ns
        if seal_ns is not None and context.time_ns >= seal_ns:
            f, seal_ns = "seal", None
        elif _is_due(self.number, shares.truncate_every):
            f = "truncate"
        elif _is_due(self.number, shares.restore_every):
            f = "restore"
        elif _is_due(self.number, shares.checkpoint_every):
            f = "checkpoint"
        elif drawn[0] >= 100 - shares.statuses:
            f = "status"
        elif drawn[0] < shares.reads:
            mops = [MicroOp("r", keys[0])]
        elif drawn[0] < shares.reads + shares.txns:
            mops = [self._append(keys[place], place) for place in range(FEWEST + drawn[1])]
        else:
            mops = [self._append(keys[0], 0)]
        after = Blocks(shares, dice, seal_ns, self.number + 1)
        return planned(context, Invocation(f=f, mops=tuple(mops) or None)), after

    def _append(self, key: int, place: int) -> MicroOp:
        return MicroOp("append", key, self.number * MOST + place)

    def update(self, context: Context, event: Event) -> Generator:
        return self


def _is_due(number: int, every: int) -> bool:
    """True for the last operation of each so many; never if that is 0."""
    return every > 0 and number % every == every - 1


class Final(msgspec.Struct, frozen=True):
    """Reads of all keys that `load` uses if it is never late, and the question whether subscribers have read all."""

    load: Generator
    shares: Shares

    def op(self, context: Context) -> Answer:
        reads = () if self.shares.truncate_every else tuple(self._reads())
        return EachUntilOk((*reads, Invocation(f="drain")), FINAL_PAUSE_NS).op(context)

    def _reads(self) -> Iterator[Invocation]:
        count = sum(1 for _ in all_planned(self.load))
        for key in range(-(-count // self.shares.life) * self.shares.keys):
            yield Invocation(f="txn", mops=(MicroOp("r", key),))

    def update(self, context: Context, event: Event) -> Generator:
        return self


def blocks(name: str, shares: Shares, options: WorkloadOptions) -> Workload:
    """The workload as an open loop of `rate_per_s`."""
    seal_ns = options.duration_ns * 2 // 3 if shares.is_sealed else None
    source = Blocks(shares, Dice.named(options.seed, f"workload-{name}"), seal_ns)
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(
        name=name,
        load=load,
        final=Final(load, shares),
        types=("txn",),
        checks=() if shares.truncate_every else ("list-append",),
    )
