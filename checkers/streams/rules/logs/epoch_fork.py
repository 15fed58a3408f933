"""S18 epoch-fork: an epoch has one owner, so no other node may act in it.

Judged if the contract says that an operation's node owned the log that it wrote to, in the operation's epoch (`owners:
nodes`). An act is a write that certainly happened, with known node, epoch and log. A log is a partition, or the whole
stream if positions are global. Each epoch of a log is reported once, by its first act and the first of another node. A
witness is a change of the owner, between epochs with acts, whose old owner answered an operation that was invoked after
the new owner's first act: so it was alive, and could have acted. Not judged: nodes that acted without writing.
"""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from checkers.columns.arrow import integers
from checkers.columns.files import read_columns
from checkers.columns.index import codes, first_rows
from checkers.streams.findings import stream_finding
from checkers.streams.rule import Conclusion, Need, OfSource, Rule
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import INFO, NEVER, OK, Int64s, SourceWrites
from harness.core.promises import StreamContract

FORK: Final = "epoch-fork"


class Acts(Struct, frozen=True, kw_only=True):
    """Operations that certainly wrote, n of them, by index. `last` is the last operation that each node answered."""

    op: Int64s  # (n,)
    node: Int64s
    epoch: Int64s
    last: Int64s  # (nodes,)


class Forks(Struct, frozen=True, kw_only=True):
    """For each epoch of a log with acts of two nodes: the epoch's first act, and the first one of another node.

    Both are places among the acts, in order of the second.
    """

    act: Int64s
    owner: Int64s
    witnesses: int


def epoch_forks(history: Path, writes: SourceWrites, contract: StreamContract) -> Conclusion:
    """S18: acts in foreign epochs. Raises HistoryError if the history is damaged."""
    if contract.owners == "unknown":
        return Conclusion()
    acts, names = _acts(history, writes)
    op, node, epoch = acts.op, acts.node, acts.epoch
    found = forks(acts, _logs(writes, contract, op))
    if not len(found.act):
        return Conclusion(witnesses=found.witnesses)
    act, owner = int(found.act[0]), int(found.owner[0])
    who, whose, when = names[int(node[act])], names[int(node[owner])], int(epoch[act])
    finding = stream_finding(
        FORK,
        f"{who} wrote in epoch {when} (operation {op[act]}), in which {whose} had written before it (operation "
        f"{op[owner]}): an epoch has one owner.",
        facts=(when, whose, who, int(op[owner]), int(op[act])),
        ops=(int(op[owner]), int(op[act])),
        count=len(found.act),
    )
    return Conclusion((finding,), found.witnesses)


def forks(acts: Acts, log: Int64s) -> Forks:
    """The first foreign act of each epoch. `log` (n,) is the log of each act, -1 if it is not known. O(n log n)."""
    node, epoch = acts.node, acts.epoch
    known = np.flatnonzero(log >= 0)
    order = known[np.lexsort((known, epoch[known], log[known]))]
    owned = codes(log[order], epoch[order])
    heads = order[np.flatnonzero(np.diff(owned, prepend=-1))]
    owner = heads[owned]
    foreign = np.flatnonzero(node[order] != node[owner])
    earliest = foreign[first_rows(owned[foreign])]
    by_time = earliest[np.argsort(order[earliest], kind="stable")]
    old, new = heads[:-1], heads[1:]
    is_change = (log[old] == log[new]) & (node[old] != node[new])
    is_alive = acts.last[node[old]] > acts.op[new]
    return Forks(
        act=order[by_time],
        owner=owner[by_time],
        witnesses=int(np.count_nonzero(is_change & is_alive)) + len(by_time),
    )


def _acts(history: Path, writes: SourceWrites) -> tuple[Acts, list[str]]:
    """The acts of a history, and the names of the nodes."""
    table = read_columns(history / "ops.parquet", ["index", "outcome", "node", "epoch"])
    names = sorted(name for name in pc.unique(table["node"]).to_pylist() if name is not None)
    node = integers(pc.index_in(table["node"], value_set=pa.array(names, pa.string())), -1)
    op, outcome, epoch = integers(table["index"], 0), integers(table["outcome"], INFO), integers(table["epoch"], NEVER)
    last, is_answer = np.full(len(names), -1, np.int64), (node >= 0) & (outcome != INFO)
    np.maximum.at(last, node[is_answer], op[is_answer])
    is_act = (outcome == OK) & (node >= 0) & (epoch != NEVER) & np.isin(op, writes.op)
    order = np.flatnonzero(is_act)[np.argsort(op[is_act])]
    return Acts(op=op[order], node=node[order], epoch=epoch[order], last=last), names


def _logs(writes: SourceWrites, contract: StreamContract, op: Int64s) -> Int64s:
    """The log that each operation wrote to: 0 or its partition; -1 if it wrote to several, or this is not known."""
    if contract.is_position_global:
        return np.zeros(len(op), np.int64)
    least, most = np.full(len(op), NEVER, np.int64), np.full(len(op), -1, np.int64)
    mine = np.flatnonzero(np.isin(writes.op, op))
    place = np.searchsorted(op, writes.op[mine])
    np.minimum.at(least, place, writes.span[mine])
    np.maximum.at(most, place, writes.span[mine])
    return np.where(least == most, most, -1)


EPOCH_FORK: Final = Rule(
    name=FORK,
    id="S18",
    rank=260,
    anomaly=Anomaly(meaning="Two owners act in one epoch.", cause=Cause.EPOCH),
    witness="a change of a log's owner whose old owner answered an operation that began later",
    needs=frozenset({Need.SOURCE}),
    scope=OfSource(epoch_forks),
)
