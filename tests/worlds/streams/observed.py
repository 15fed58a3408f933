"""Worlds as a history observes them, whole or spoiled."""

from collections.abc import Iterator
from dataclasses import replace

from harness.core.columns import NEVER
from tests.oracles.watermark_edges import PlacedCuts
from tests.oracles.watermark_source import Transaction, World
from tests.worlds.streams.generator import damaged
from tests.worlds.streams.spoilers import SPOILERS
from tests.worlds.streams.worlds import world


def spoiled(kind: str, seed: int) -> Iterator[World]:
    """A world of that kind, and that with each fault that fits."""
    one = world(seed, kind)
    yield one
    yield from (bad.world for spoil in SPOILERS.values() if (bad := spoil(one, seed)) is not None)


def broken(seed: int, kind: str) -> World:
    """A stream with random changes, as the rules are tried on, under the contract of a world."""
    contract = world(seed, kind).contract
    log, source = damaged(seed, contract)
    outcomes = sorted({w.op: w.outcome for w in source}.items())
    operations = tuple(
        Transaction(index=op, process=op, invoke=op, complete=NEVER, outcome=outcome) for op, outcome in outcomes
    )
    return World(
        transactions=operations,
        writes=tuple(source),
        log=tuple(log),
        received=tuple(range(len(log))),
        contract=contract,
    )


def observed(one: World) -> World:
    """The world without what nobody saw: positions and ranks of unclear writes are told by those who saw them."""
    seen = PlacedCuts(one).source
    writes = (w if seen.is_committed(w.op) else replace(w, position=NEVER, version=NEVER) for w in one.writes)
    return replace(one, writes=tuple(writes))
