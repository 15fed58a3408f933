"""The operations that appended, as columns."""

from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from checkers.columns.arrow import integers
from checkers.columns.facts import Facts
from checkers.columns.files import read_columns
from checkers.columns.index import Places
from checkers.columns.runs import distinct, ordered
from checkers.history.tables import Transaction
from harness.core.columns import APPEND, INFO, NEVER, Int64s

_PLAIN = ("index", "outcome", "invoke_ns", "complete_ns", "invoke_seq", "complete_seq")


class Written(Struct, frozen=True, dict=True):
    """n operations that appended, by index; NEVER where a number is missing. `node` is a place in `nodes`, or -1.

    `epoch` is the position that the operation reported, else its epoch. Element i, (m,), was appended by the operation
    in row owner[i]: sorted by operation, then in the order of its appends.
    """

    index: Int64s
    outcome: Int64s
    invoke_ns: Int64s
    complete_ns: Int64s
    invoke_seq: Int64s
    complete_seq: Int64s
    epoch: Int64s
    node: Int64s
    nodes: tuple[str, ...]
    owner: Int64s
    key: Int64s
    value: Int64s

    @cached_property
    def start(self) -> Int64s:
        """The first element of each operation, shape (n + 1,)."""
        return np.searchsorted(self.owner, np.arange(len(self.index) + 1))

    def transaction(self, row: int) -> Transaction:
        """The operation in that row as a value."""
        elements = slice(int(self.start[row]), int(self.start[row + 1]))
        node, epoch = int(self.node[row]), int(self.epoch[row])
        return Transaction(
            **{name: int(getattr(self, name)[row]) for name in _PLAIN},
            node=self.nodes[node] if node >= 0 else None,
            epoch=None if epoch == NEVER else epoch,
            writes=tuple(zip(self.key[elements].tolist(), self.value[elements].tolist(), strict=True)),
        )


def written_in(history: Path, facts: Facts) -> Written:
    """The operations of a history that appended: read once for all checks that share `facts`. Raises HistoryError."""
    return facts.of((history, "written"), partial(read_written, history))


def read_written(history: Path) -> Written:
    """The operations of a history that appended. Raises HistoryError."""
    mops = read_columns(history / "mops.parquet", ["op", "key", "value"], f=[APPEND])
    ops = read_columns(history / "ops.parquet", [*_PLAIN, "node", "commit_ts", "epoch"])
    op = integers(mops["op"])
    ops = ops.filter(pc.is_in(ops["index"], value_set=pa.array(distinct(np.sort(op)), pa.int64()))).sort_by("index")
    index, reported = integers(ops["index"]), integers(ops["commit_ts"], NEVER)
    nodes = sorted(name for name in pc.unique(ops["node"]).to_pylist() if name is not None)
    owner = Places(index).of(op)
    order, owner = ordered(owner)
    return Written(
        index=index,
        outcome=integers(ops["outcome"], INFO),
        invoke_ns=integers(ops["invoke_ns"]),
        complete_ns=integers(ops["complete_ns"], NEVER),
        invoke_seq=integers(ops["invoke_seq"]),
        complete_seq=integers(ops["complete_seq"], NEVER),
        epoch=np.where(reported == NEVER, integers(ops["epoch"], NEVER), reported),
        node=integers(pc.index_in(ops["node"], value_set=pa.array(nodes, pa.string())), -1),
        nodes=tuple(nodes),
        owner=owner,
        key=integers(mops["key"])[order],
        value=integers(mops["value"], NEVER)[order],
    )
