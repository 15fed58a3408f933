"""Transactions drawn at random, and histories cut into chunks."""

from itertools import pairwise
from random import Random

import numpy as np

from checkers.history.transactions import Operation, Source, select, to_transactions

ALL = frozenset(
    {
        *("G2-realtime", "G1-realtime", "internal", "missed-own-write", "lost-update", "duplicate-elements"),
        *("cyclic-versions", "garbage-read", "unwritten-read"),
    }
)


def randomness(seed: int) -> Random:
    return Random(seed)


def cut(draw: Random, operations: list[Operation]) -> list[Source]:
    """The history in chunks, cut at random."""
    whole = to_transactions(operations)
    cuts = sorted(draw.randrange(len(operations) + 1) for _ in range(draw.randrange(3)))
    bounds = [0, *cuts, len(operations)]
    return [select(whole, np.arange(low, high)) for low, high in pairwise(bounds)]
