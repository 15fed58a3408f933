"""Load for sites that all take writes and replicate to each other: transactions on few rows, with deletions.

Rows are registers, and new ones take the place of the old after a while; a few get most of the traffic. Every value is
new, and greater than those before it, so that a site may let the greatest win; null deletes a row. A third of the
transactions read a row that the one before them wrote, and write others: they build on it. At the end each site must
have the changes of all (`drain`).
"""

from typing import Final

import msgspec

from harness.core.generators.combinators import Answer, Event, Stagger, TimeLimit, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.record import MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.options import WorkloadOptions

NAME: Final = "primaries"
MOST: Final = 3  # Rows of one transaction.
ROWS: Final = 4  # Rows for each of the keys that are asked for: most of them are calm.
LIFE: Final = 250  # Transactions after which the rows are replaced.
READING: Final = 33  # Percent.
DELETING: Final = 10  # Percent.


class Writes(msgspec.Struct, frozen=True):
    """An endless source of transactions on `rows` rows at a time; `last` is a row of the one before."""

    rows: int
    dice: Dice
    number: int = 1
    last: str = "r0"

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        drawn, dice = self.dice.each_below((MOST, 100, 100, *[self.rows] * MOST))
        count, reading, deleting, *places = drawn
        first = self.number // LIFE * self.rows
        skewed = (first + place * place // self.rows for place in places[: count + 1])
        keys = [f"r{place}" for place in dict.fromkeys(skewed)]
        mops = [MicroOp("w", key, self.number * MOST + place) for place, key in enumerate(keys)]
        if deleting < DELETING:
            mops[-1] = MicroOp("w", keys[-1])
        if reading < READING and self.last not in keys:
            mops = [MicroOp("r", self.last), *mops]
        after = Writes(self.rows, dice, self.number + 1, keys[-1])
        return planned(context, Invocation(f="txn", mops=tuple(mops))), after

    def update(self, context: Context, event: Event) -> Generator:
        return self


def primaries(options: WorkloadOptions) -> Workload:
    """The workload as an open loop of `rate_per_s`."""
    source = Writes(options.key_count * ROWS, Dice.named(options.seed, f"workload-{NAME}"))
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    drain = EachUntilOk((Invocation(f="drain"),), FINAL_PAUSE_NS)
    return Workload(
        name=NAME,
        load=TimeLimit(paced, options.duration_ns),
        final=drain,
        types=("txn",),
        checks=("convergence", "conflicts"),
    )
