"""Dense numbers for tuples of integers, by sorts of single words: far faster than to sort by several columns."""

import numpy as np

from checkers import ragged
from harness.core.columns import NEVER, Int64s


def codes(*columns: Int64s) -> Int64s:
    """Dense numbers from 0 for the rows of `columns`, each (n,), in their lexical order."""
    result = _dense(columns[0])
    for column in columns[1:]:
        part = _dense(column)
        # Both are below n, so that their product fits.
        result = ragged.codes(result * (int(part.max(initial=0)) + 1) + part)[1]
    return result


def _dense(column: Int64s) -> Int64s:
    """The rank of each value among the distinct ones. NEVER would make their range too wide for a quick sort."""
    is_never = column == NEVER
    if is_never.any():
        top = int(column[~is_never].max(initial=0))
        column = np.where(is_never, top + 1, column)
    return ragged.codes(column)[1]
