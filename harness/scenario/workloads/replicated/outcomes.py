"""Loads for servers that replicate transaction by transaction, with reads on replicas.

A group has twelve keys; even keys belong to one master, and odd ones to another. A transaction stays with one. Its kind
tells what goes wrong on the way, so that logs have pieces of statements that failed, were undone to a savepoint, or
belong to a transaction that was rolled back. `replica-read` shows lists on a replica at one moment. `person` sets, or
moves, rows of another table; `mixed` appends and has such a row, of its own, which `conflict` inserts on a replica
before; `schema` changes a table. At the end all keys are read, and then each replica must have
all (`drain`), and show it.

`outcomes` mixes all kinds, `large` has long transactions with many pieces, `sessions` writes few keys from many sides.
"""

from functools import partial
from typing import Final, NamedTuple

import msgspec

from harness.core.generators.combinators import Answer, Event, Phases, Stagger, TimeLimit, all_planned, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.record import Json, MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.options import WorkloadOptions

SIZE: Final = 12  # Keys of a group; every second one belongs to the same master.
MASTERS: Final = 2
MOST: Final = 9  # Appends of the longest transaction.
FOLLOWERS: Final = ("m1", "m2", "r1", "r2", "o1")
READERS: Final = ("r1", "r1", "r2", "r2", "o1")
AHEAD: Final = 6  # Operations that a conflict looks ahead.
FIRST_SHARE: Final = 65  # Percent of the transactions on the first master.
PEOPLE: Final = ("ann", "o'neil", "bo;b", "", "eve")
VALUES: Final[tuple[Json, ...]] = (None, "", "it's", 'a "b"', "x;y", "plain")


class Kinds(NamedTuple):
    """The kinds of a load, each as often as it is drawn, and how many appends its transactions have at most."""

    kinds: tuple[str, ...]
    most: int
    life: int  # Operations of a group.


OUTCOMES: Final = Kinds(
    (
        *("txn", "txn", "reads", "reads", "bulk", "bulk", "failing", "failing-last", "undone", "undone"),
        *(
            "abandoned",
            "refused",
            "person",
            "person",
            "schema",
            "mixed",
            "mixed",
            "conflict",
            "replica-read",
            "replica-read",
            "replica-read",
        ),
    ),
    5,
    60,
)
LARGE: Final = Kinds(
    ("bulk", "bulk", "txn", "txn", "failing-last", "undone", "abandoned", "abandoned", "replica-read", "replica-read"),
    MOST,
    40,
)
SESSIONS: Final = Kinds(("txn", "reads", "reads", "reads", "bulk", "abandoned", "replica-read"), 3, 30)


class Turns(msgspec.Struct, frozen=True):
    """An endless source of operations, one group of keys after the other."""

    load: Kinds
    dice: Dice
    number: int = 0

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        drawn, dice = self.dice.each_below((len(self.load.kinds), 100, self.load.most, *[SIZE // MASTERS] * MOST))
        after = Turns(self.load, dice, self.number + 1)
        return planned(context, self._invocation(*drawn)), after

    def _invocation(self, kind: int, percent: int, count: int, *picks: int) -> Invocation:
        f = self.load.kinds[kind]
        master = 0 if percent < FIRST_SHARE else 1
        first = self.number // self.load.life * SIZE
        keys: list[Json] = [first + master + MASTERS * pick for pick in picks]
        match f:
            case "replica-read":
                shown = range(max(0, first - SIZE) if percent % 3 == 0 else first, first + SIZE)
                reader = READERS[percent % len(READERS)]
                return Invocation(f=f, value=[reader, [*shown]])
            case "person":
                name, value = f"{PEOPLE[picks[0] % len(PEOPLE)]}{master}", VALUES[picks[1] % len(VALUES)]
                if picks[2] < SIZE // MASTERS // 2:
                    return Invocation(
                        f=f, value=[master, "move", name, None, f"{PEOPLE[picks[3] % len(PEOPLE)]}{master}"]
                    )
                return Invocation(f=f, value=[master, "set", name, value, None])
            case "conflict":
                coming: list[Json] = [f"p{self.number + ahead}" for ahead in range(1, AHEAD)]
                return Invocation(f=f, value=["r2", coming])
            case "schema":
                return Invocation(f=f, value=[master, ("lists", "queues")[percent % 2]])
            case "reads":
                read = tuple(MicroOp("r", key) for key in dict.fromkeys(keys[:2]))
                appended = tuple(self._append(key, place) for place, key in enumerate(keys[1 : 1 + count % 2]))
                return Invocation(f=f, mops=(*read, *appended))
            case _:
                shown_keys = keys[: 1 + count]
                if f == "bulk":  # The rows of one statement are of one table.
                    shown_keys = [
                        key for key in shown_keys if isinstance(key, int) and key // MASTERS % 3 == picks[0] % 3
                    ]
                    shown_keys = shown_keys or keys[:1]
                return Invocation(f=f, mops=tuple(self._append(key, place) for place, key in enumerate(shown_keys)))

    def _append(self, key: Json, place: int) -> MicroOp:
        return MicroOp("append", key, self.number * MOST + place)

    def update(self, context: Context, event: Event) -> Generator:
        return self


class FinalPhases(msgspec.Struct, frozen=True):
    """Reads of all keys, then each follower must have everything, then reads there."""

    load: Generator
    kinds: Kinds

    def op(self, context: Context) -> Answer:
        count = sum(1 for _ in all_planned(self.load))
        groups = range(-(-count // self.kinds.life))
        reads = tuple(
            Invocation(
                f="reads",
                mops=tuple(MicroOp("r", key) for key in range(group * SIZE + master, (group + 1) * SIZE, MASTERS)),
            )
            for group in groups
            for master in range(MASTERS)
        )
        drains = tuple(Invocation(f="drain", value=node) for node in FOLLOWERS)
        shown = tuple(
            Invocation(f="replica-read", value=[node, [*range(group * SIZE, (group + 1) * SIZE)]])
            for node in ("r1", "r2")
            for group in groups
        )
        phases = Phases(tuple(EachUntilOk(each, FINAL_PAUSE_NS) for each in (reads, drains, drains[2:], shown)))
        return phases.op(context)

    def update(self, context: Context, event: Event) -> Generator:
        return self


def replicated(name: str, kinds: Kinds, options: WorkloadOptions) -> Workload:
    """The workload as an open loop of `rate_per_s`."""
    source = Turns(kinds, Dice.named(options.seed, f"workload-{name}"))
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(
        name=name,
        load=load,
        final=FinalPhases(load, kinds),
        types=("reads", "replica-read"),
        checks=("list-append",),
    )


OUTCOMES_LOAD: Final = partial(replicated, "outcomes", OUTCOMES)
LARGE_LOAD: Final = partial(replicated, "large", LARGE)
SESSIONS_LOAD: Final = partial(replicated, "sessions", SESSIONS)
