"""Loads for a cluster whose epochs a replica applies: list-append, reads there, schema changes, and switches.

Every few operations one is another: `replica-read` shows some lists of the replica at one moment, `ddl` changes the
schema (an element of the list "schema"), `switch` has the replica take the other binlog, and `restore` shows what a
backup and the epochs after it in a binlog restore. `epochs` is the mixture for all, in `hot-epochs` an epoch has many
changes of one key, `schemas` has many schema changes and switches, and `backups` has restores. At the end all keys are
read, then the replica must have all (`drain`), and show it.
"""

from functools import partial
from typing import Final, NamedTuple

import msgspec

from harness.core.generators.combinators import Answer, Event, Phases, Stagger, TimeLimit, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.record import MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.list_append import Transactions, planned_key_count
from harness.scenario.workloads.options import WorkloadOptions
from harness.scenario.workloads.populations import (
    NDB_MIX,
    WIDE_MAX,
    Mix,
    Population,
    counter,
    two_keys,
    wide,
)

REPLICA: Final = "r1"
SCHEMA: Final = "schema"
SHOWN: Final = 24  # Keys of one read: the latest.


class Turns(NamedTuple):
    """The operations among transactions: every so many-th is a read of the replica, a schema change, or a switch."""

    read: int = 4
    ddl: int = 37
    switch: int = 151
    restore: int = 0  # None.


HOT: Mix = (
    (50, Population(counter, "locked")),
    (30, Population(two_keys, is_orderly=True)),
    (20, Population(wide, places=WIDE_MAX, is_orderly=True)),
)


class Replicated(msgspec.Struct, frozen=True):
    """An endless source: transactions, with the other operations among them."""

    transactions: Transactions
    turns: Turns
    number: int = 1

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        number, source = self.number, self.transactions
        if number % self.turns.switch == 0:
            invocation = Invocation(f="switch")
        elif self.turns.restore and number % self.turns.restore == 0:
            invocation = Invocation(f="restore", value=number // self.turns.restore)
        elif number % self.turns.ddl == 0:
            invocation = Invocation(f="ddl", mops=(MicroOp("append", SCHEMA, number),))
        elif number % self.turns.read == 0:
            keys = range(max(0, source.next_key - SHOWN), source.next_key)
            invocation = Invocation(f="replica-read", value=[REPLICA, [*keys]])
        else:
            answer = source.op(context)
            assert answer is not None  # It is endless.
            plan, after = answer
            assert isinstance(after, Transactions)
            return plan, Replicated(after, self.turns, number + 1)
        return planned(context, invocation), Replicated(source, self.turns, number + 1)

    def update(self, context: Context, event: Event) -> Generator:
        return self


class FinalPhases(msgspec.Struct, frozen=True):
    """Reads of all keys, then the replica must have everything, then a read there."""

    load: Generator

    def op(self, context: Context) -> Answer:
        count = planned_key_count(self.load)
        reads = tuple(Invocation(f="txn", mops=(MicroOp("r", key),)) for key in (*range(count), SCHEMA))
        drain = Invocation(f="drain", value=REPLICA)
        shown = Invocation(f="replica-read", value=[REPLICA, [*range(count)]])
        phases = (EachUntilOk(each, FINAL_PAUSE_NS) for each in (reads, (drain,), (shown,)))
        return Phases(tuple(phases)).op(context)

    def update(self, context: Context, event: Event) -> Generator:
        return self


def epochs(name: str, mix: Mix, turns: Turns, options: WorkloadOptions) -> Workload:
    """The workload as an open loop of `rate_per_s`."""
    transactions = Transactions(
        mix=mix,
        max_length=options.max_txn_length,
        max_appends=options.max_appends_per_key,
        slots=(),
        next_key=0,
        dice=Dice.named(options.seed, f"workload-{name}"),
    ).opened(options.key_count)
    paced = Stagger(Replicated(transactions, turns), options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(
        name=name,
        load=load,
        final=FinalPhases(load),
        types=("txn", "replica-read"),
        checks=("list-append",),
    )


EPOCHS_LOAD: Final = partial(epochs, "epochs", NDB_MIX, Turns())
HOT_EPOCHS_LOAD: Final = partial(epochs, "hot-epochs", HOT, Turns())
BACKUPS_LOAD: Final = partial(epochs, "backups", NDB_MIX, Turns(restore=41))
SCHEMAS_LOAD: Final = partial(epochs, "schemas", NDB_MIX, Turns(ddl=3, switch=23))
