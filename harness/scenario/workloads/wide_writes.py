"""Wide writes: transactions that write many keys at once, beside short ones on the same keys and on others.

A wide transaction that takes long is open while others come and go. Whether it delays them, or they overtake it, shows
in their results and in change streams. `large-vs-tick` mixes wide transactions with short writers, `stale-reads` with
reads of the past as well, `region-churn` with changes of the regions that hold keys; in `pusher` readers follow each
other so closely that some meet it at every moment of its life. `restores` is in restores.py.
"""

import msgspec

from harness.core.generators.combinators import Answer, Event, Stagger, TimeLimit, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator
from harness.core.record import Json, MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.grouped import Design, FinalReads, Groups, Turn, grouped
from harness.scenario.workloads.options import WorkloadOptions

WIDE = 8  # The number of keys of a wide transaction.
SMALL = 4  # The number of keys that only short transactions use.
LIFE = 24
OVERLAP_PERCENT, READ_PERCENT = 20, 30  # The share of short transactions on a wide one's keys, and that of reads.
PUSHED = 5
STALE_PERCENT = 40
AGE_MS = (20, 400)  # The least and greatest age of the states that stale reads request.
FUTURE_PERCENT, FUTURE_MS = 4, 300  # A few request a state that far ahead, which no system can know.
PUSHED_LIFE = 12
CHANGES = ("split", "merge", "transfer")  # The region of a key is split there, joined with a neighbour, led elsewhere.
CHANGE_PERCENT = 3


def large_vs_tick(turn: Turn) -> tuple[MicroOp, ...]:
    """The wide transaction as the first one of the group, then short ones."""
    wide, small = turn.keys[:WIDE], turn.keys[WIDE:]
    if turn.place == 0:
        return tuple(MicroOp("append", key, turn.number) for key in wide)
    first, second = wide[turn.picks[0] % WIDE], small[turn.picks[1] % SMALL]
    if turn.percent < OVERLAP_PERCENT:
        return (MicroOp("append", first, turn.number), MicroOp("append", second, turn.number))
    if turn.percent < OVERLAP_PERCENT + READ_PERCENT:
        return turn.reads((first, second, wide[turn.picks[2] % WIDE]))
    return (MicroOp("append", second, turn.number),)


def pusher(turn: Turn) -> tuple[MicroOp, ...]:
    """The wide transaction as the first one of the group, then reads of one or two of its keys."""
    if turn.place == 0:
        return tuple(MicroOp("append", key, turn.number) for key in turn.keys)
    return turn.reads(turn.keys[turn.picks[0] % PUSHED :][: 1 + turn.percent % 2])


LARGE_VS_TICK = Design(check="large-vs-tick", size=WIDE + SMALL, life=LIFE, mops=large_vs_tick, promises=())
PUSHER = Design(check="pusher", size=PUSHED, life=PUSHED_LIFE, mops=pusher, promises=(), has_pairs=False)


def wide_writes(name: str, design: Design, options: WorkloadOptions) -> Workload:
    """The workload of that design. It has no check of its own: those of transactions and streams judge it."""
    return msgspec.structs.replace(grouped(name, design, "none", options), checks=("list-append",))


class WithStaleReads(msgspec.Struct, frozen=True):
    """The operations of `source`, mixed with stale reads: of two keys of a wide transaction, with an age in ms.

    With `changes` a few of these are mixed in as well, each with one key.
    """

    source: Groups
    dice: Dice
    changes: tuple[str, ...] = ()

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        (percent, place, age_ms), dice = self.dice.each_below((100, WIDE, AGE_MS[1] - AGE_MS[0]))
        if percent >= STALE_PERCENT:
            answer = self.source.op(context)
            assert answer is not None  # `source` never ends.
            assert isinstance(answer[1], Groups)
            return answer[0], msgspec.structs.replace(self, source=answer[1], dice=dice)
        is_future = percent >= STALE_PERCENT - FUTURE_PERCENT
        before = 0 if is_future else place % 2  # A read of the future can meet only what is still open.
        group = max(0, self.source.number // LIFE - before)
        first = group * LARGE_VS_TICK.span
        keys: list[Json] = [first + place, first + (place + 3) % WIDE]
        invocation = Invocation(f="stale-read", value=[keys, -FUTURE_MS if is_future else AGE_MS[0] + age_ms])
        if self.changes and percent < CHANGE_PERCENT:
            invocation = Invocation(f=self.changes[percent % len(self.changes)], value=[first + place])
        return planned(context, invocation), msgspec.structs.replace(self, dice=dice)

    def update(self, context: Context, event: Event) -> Generator:
        return self


def stale_reads(name: str, changes: tuple[str, ...], options: WorkloadOptions) -> Workload:
    """The load of large-vs-tick with stale reads, and with some of these changes of regions."""
    groups = Groups(LARGE_VS_TICK, "none", Dice.named(options.seed, "workload-large-vs-tick"))
    source = WithStaleReads(groups, Dice.named(options.seed, "workload-stale-reads"), changes)
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(
        name=name,
        load=load,
        final=FinalReads(load, LARGE_VS_TICK, "none"),
        types=("txn", "stale-read"),
        checks=("list-append",),
    )
