"""Loads for systems in which a transaction reads at one timestamp, or writes one table.

A group has nine keys, three in each of the tables t0 to t2. A transaction inserts into one table, reads several, or
reads keys and then appends to one table. `tables` mixes these with reads of the past, with reads that need not be
fresh, and with a few records for an upstream system.

`views` changes rows of the tables a0 and a1 (inserts, and deletes of all rows of a key), and queries the views over
them: `sums` of a0 and `pairs` of both by key, `kinds` and `tops` of a1. `sources` writes records to an upstream system,
whose answers are acknowledgements, and reads the source that ingests them. `ddl` creates tables, inserts into them,
reads and drops them. `timelines` appends to a list whose timestamps count its writes, reads it, and reads it together
with a list of the other tables, which must be refused. At the end all is read until that succeeds.
"""

from functools import partial
from typing import Final

import msgspec

from harness.core.generators.combinators import Answer, Event, Phases, Stagger, TimeLimit, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.record import Json, MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.grouped import Design, FinalReads, Groups, Turn
from harness.scenario.workloads.options import WorkloadOptions

TABLES: Final = 3
SIZE, LIFE = 9, 40
AGES_MS: Final = (-40, 350)  # A few reads of the past are about a moment that is to come.
BAG_KEYS, BAG_VALUES = 6, 9
VIEWS: Final = ("sums", "pairs", "kinds", "tops", "a0", "a1")
Others = tuple[str, ...]


def tables(turn: Turn) -> tuple[MicroOp, ...]:
    """An insert, a read, a read-then-write; a few write two tables, which must be refused."""
    first, second, third, _ = turn.picks
    beside = turn.keys[(first + TABLES * (1 + second % 2)) % SIZE]  # In the same table.
    if turn.percent < 25:
        return (MicroOp("append", turn.keys[first], turn.number),)
    if turn.percent < 35:
        return (MicroOp("append", turn.keys[first], turn.number), MicroOp("append", beside, turn.number))
    if turn.percent < 50:
        return (*turn.reads((turn.keys[first],)), MicroOp("append", turn.keys[first], turn.number))
    if turn.percent < 55:
        return (*turn.reads((turn.keys[third],)), MicroOp("append", turn.keys[first], turn.number))
    if turn.percent < 57:
        other = turn.keys[(first + 1) % SIZE]
        return (MicroOp("append", turn.keys[first], turn.number), MicroOp("append", other, turn.number))
    return turn.reads(tuple(dict.fromkeys((turn.keys[first], turn.keys[second], turn.keys[third]))))


TABLE_TXNS: Final = Design(check="tables", size=SIZE, life=LIFE, mops=tables, promises=(), has_pairs=False)


class Mixed(msgspec.Struct, frozen=True):
    """The operations of `source`, mixed with those kinds of others, which have `percent` of all."""

    source: Groups
    dice: Dice
    kinds: Others
    percent: int
    number: int = 0

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        (percent, kind, *drawn), dice = self.dice.each_below((100, len(self.kinds), 1000, 1000, 1000))
        after = msgspec.structs.replace(self, dice=dice, number=self.number + 1)
        if percent >= self.percent:
            answer = self.source.op(context)
            assert answer is not None  # `source` never ends.
            assert isinstance(answer[1], Groups)
            return answer[0], msgspec.structs.replace(after, source=answer[1])
        first = max(0, self.source.number // LIFE - drawn[2] % 2) * SIZE  # The present group, or the one before.
        keys: list[Json] = [first + drawn[0] % SIZE, first + (drawn[0] + 1 + drawn[1] % (SIZE - 1)) % SIZE]
        return planned(context, invocation(self.kinds[kind], self.number, drawn, keys)), after

    def update(self, context: Context, event: Event) -> Generator:
        return self


def invocation(kind: str, number: int, drawn: list[int], keys: list[Json]) -> Invocation:
    """An operation of that kind: number, drawn numbers below 1000, and two keys of lists."""
    first, second, third = drawn
    bag, row = f"a{first % 2}", second % BAG_KEYS
    match kind:
        case "stale-read" if third % 10 == 0:  # Records in every load: else faults of upstream's links do nothing.
            return Invocation(f="produce", value=number)
        case "stale-read":
            return Invocation(f=kind, value=[keys, AGES_MS[0] + third * (AGES_MS[1] - AGES_MS[0]) // 1000])
        case "serializable-read":
            return Invocation(f=kind, value=[keys])
        case "insert":
            return Invocation(f="change", value=[[bag, row, third % BAG_VALUES, 1]])
        case "delete":
            return Invocation(f="change", value=[[bag, row, None, -1]])
        case "query":
            return Invocation(f=kind, value=VIEWS[first % len(VIEWS)])
        case "source-as-of":
            return Invocation(f=kind, value=-10 * (1 + first % 6))
        case "produce" | "count-append":
            return Invocation(f=kind, value=number)
        case "insert-there":
            return Invocation(f="change", value=[[f"x{number // 30}", row, number, 1]])
        case "create" | "drop" | "query-there":
            table = f"x{number // 30 - (kind == 'drop')}"
            return Invocation(f="query" if kind == "query-there" else kind, value=table)
        case _:
            return Invocation(f=kind)


def mixed(name: str, kinds: Others, percent: int, others: tuple[Invocation, ...], options: WorkloadOptions) -> Workload:
    """The transactions on lists with `percent` operations of other kinds; at the end `others` must succeed."""
    groups = Groups(TABLE_TXNS, "none", Dice.named(options.seed, "workload-tables"))
    source = Mixed(groups, Dice.named(options.seed, f"workload-{name}"), kinds, percent)
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(
        name=name,
        load=load,
        final=Phases((FinalReads(load, TABLE_TXNS, "none"), EachUntilOk(others, FINAL_PAUSE_NS))),
        types=("txn", *dict.fromkeys(each.f for each in others)),
        checks=("list-append",),
    )


TABLES_LOAD: Final = partial(mixed, "tables", ("stale-read", "serializable-read"), 25, ())
VIEWS_LOAD: Final = partial(
    mixed,
    "views",
    ("insert", "insert", "insert", "delete", "delete", "query", "query", "produce"),
    75,
    tuple(Invocation(f="query", value=name) for name in VIEWS),
)
SOURCES_LOAD: Final = partial(
    mixed, "sources", ("produce", "read-source", "read-source", "source-as-of"), 75, (Invocation(f="read-source"),)
)
DDL_LOAD: Final = partial(
    mixed, "ddl", ("create", "insert-there", "insert-there", "query-there", "drop", "produce"), 65, ()
)
TIMELINES_LOAD: Final = partial(
    mixed,
    "timelines",
    ("count-append", "count-append", "count-read", "count-read", "mixed-read", "produce"),
    60,
    (Invocation(f="count-read"),),
)
