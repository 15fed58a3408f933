"""A slow, obvious twin of the checks of one binlog and its index: every pair of records is looked at."""

from collections.abc import Iterator, Sequence
from itertools import combinations

Record = tuple[str, int, int]  # Kind, epoch, number of rows; all of one server.
Row = tuple[int, int, int, int]  # Epoch, position, next position, count.


def anomalies_of(log: Sequence[Record], index: Sequence[Row], known: Sequence[int]) -> set[str]:
    """The kinds of anomalies; `known` are the epochs that have changes."""
    return {*_pairs(log, known), *_places(log, index), *_holes(log, index)}


def _pairs(log: Sequence[Record], known: Sequence[int]) -> Iterator[str]:
    for one, other in combinations(range(len(log)), 2):
        between = [kind for kind, _, _ in log[one + 1 : other]]
        if log[one][0] != "epoch" or log[other][0] != "epoch" or "epoch" in between:
            continue
        if log[one][1] == log[other][1]:
            yield "split-epoch"
        if log[one][1] > log[other][1]:
            yield "binlog-order"
        if "incident" not in between and any(log[one][1] < epoch < log[other][1] for epoch in known):
            yield "binlog-gap"


def _places(log: Sequence[Record], index: Sequence[Row]) -> Iterator[str]:
    for epoch, position, next_position, count in index:
        is_there = position < len(log) and log[position] == ("epoch", epoch, count)
        if not is_there or next_position != position + 1:
            yield "false-index"


def _holes(log: Sequence[Record], index: Sequence[Row]) -> Iterator[str]:
    """An epoch that is not indexed, and one after it that is, with no incident between them."""
    indexed = {epoch for epoch, _, _, _ in index}
    for one, other in combinations(range(len(log)), 2):
        is_hole = log[one][0] == log[other][0] == "epoch" and log[one][1] not in indexed and log[other][1] in indexed
        if is_hole and "incident" not in [kind for kind, _, _ in log[one:other]]:
            yield "false-index"
