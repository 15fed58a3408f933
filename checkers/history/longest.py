"""The longest read of each key, which gives the order of its elements, and how far the other reads agree with it."""

import numpy as np
from msgspec import Struct

from checkers.columns.index import ascending
from checkers.columns.runs import common_prefix, first_of_each
from harness.core.columns import Int64s


class Longest(Struct, frozen=True):
    """The longest list of each key, for n lists: that of list i is `row[owner[i]]`.

    Both begin with the same `agreed[i]` elements.
    """

    row: Int64s  # one for each key that has a list, keys ascending
    owner: Int64s  # (n,)
    agreed: Int64s  # (n,)


def longest_rows(key: Int64s, length: Int64s, *ties: Int64s) -> Int64s:
    """The row of the longest list of each key, keys ascending. Among equals the least by `ties`, then the first."""
    order = ascending(key, -length, *ties)
    return order[first_of_each(key[order])]


def longest_lists(
    key: Int64s, start: Int64s, length: Int64s, elements: Int64s, *ties: Int64s, is_last: bool = False
) -> Longest:
    """The longest of the lists elements[start[i]:start[i] + length[i]]. `is_last`: of equally long ones the last.

    O(n log n), and a pass over all elements.
    """
    order = ascending(key, length if is_last else -length, *ties)
    is_first = first_of_each(key[order])
    owner = np.empty(len(key), np.int64)
    owner[order] = np.cumsum(is_first) - 1
    row = order[np.append(is_first[1:], True)[: len(order)] if is_last else is_first]
    agreed = common_prefix(elements, elements, left_start=start, right_start=start[row][owner], length=length)
    return Longest(row, owner, agreed)
