"""Values of registers that are JSON arrays. In a record a read of one looks like a read of a list.

A key that some operation writes, and to which none appends, is a register, so what its reads show are values. That is
known only when the whole history is written: then the reads of these keys are written again. A read of the empty array,
if no operation wrote that, saw nothing: in EDN a read of nil may have become one.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.core.columns import APPEND, WRITE, Int64s
from harness.core.record import Json
from harness.record.formats.parquet.names import Names


class Arrays:
    """The keys of a history, by what its operations do with them."""

    def __init__(self) -> None:
        self._written, self._appended, self._listed = set[int](), set[int](), set[int]()

    def add(self, mops: pa.Table) -> None:
        """Note the keys of those micro-operations."""
        f, key = (mops[name].to_numpy() for name in ("f", "key"))
        self._appended.update(np.unique(key[f == APPEND]).tolist())
        self._written.update(np.unique(key[f == WRITE]).tolist())
        if self._written:
            self._listed.update(np.unique(key[mops["read"].is_valid().to_numpy()]).tolist())

    def keys(self) -> Int64s:
        """The keys of registers of which some read looks like a read of a list, ascending."""
        return np.array(sorted(self._listed & self._written - self._appended), np.int64)


def with_values(mops: pa.Table, keys: Int64s, names: Names) -> pa.Table:
    """The micro-operations with the values of those registers in place of the lists that their reads show."""
    is_value = np.isin(mops["key"].to_numpy(), keys) & mops["read"].is_valid().to_numpy()
    rows = np.flatnonzero(is_value)
    if not len(rows):
        return mops
    value, values = mops["value"].to_pylist(), names.values()
    for row, elements in zip(rows.tolist(), mops["read"].take(rows).to_pylist(), strict=True):
        shown: list[Json] = [values.get(each, each) for each in elements]
        value[row] = names.id(shown) if shown or names.has([]) else None
    columns = {"value": pa.array(value, pa.int64()), "read": pc.if_else(is_value, None, mops["read"])}
    for name, column in columns.items():
        place = mops.schema.get_field_index(name)
        mops = mops.set_column(place, mops.schema.field(place), column)
    return mops
