"""The order of a key's versions, from the lists that were read."""

from pathlib import Path

import numpy as np
import pytest

from checkers.stream_chunks import read_writes
from checkers.stream_ranks import Lists, joined, lists_of, longest, ranked, read_ranked
from harness.core.columns import NEVER
from harness.core.record import Complete, Invoke, Json, MicroOp, Outcome, Record
from harness.formats.parquet import write_history
from tests.stream_language import key_of, source_of, writes


def lists(*texts: str) -> Lists:
    """Lists that were read, as "x12": of x the list [1, 2]."""
    lengths = [len(text) - 1 for text in texts]
    elements = [int(digit) for text in texts for digit in text[1:]]
    return lists_of(*(np.array(column, np.int64) for column in ([key_of(t[0]) for t in texts], lengths, elements)))


def ranks(read: Lists, source: str) -> list[int | None]:
    """The rank of each write of the source, None where it is not known."""
    return [None if rank == NEVER else rank for rank in ranked(source_of(writes(source)), read).version.tolist()]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ([], [None, None, None]),
        (["x"], [None, None, None]),
        (["x21"], [1, 0, None]),
        (["x2", "x213", "x21", "x"], [1, 0, 2]),
        (["x213", "y3"], [1, 0, 2]),
        (["x213", "x23"], [None, 0, None]),  # They part behind the 2.
        (["x21", "x123"], [None, None, None]),
        (["x2132"], [None, None, None]),  # The 2 stands there twice: it is first, or it is last.
        (["x1233"], [0, 1, None]),
    ],
)
def test_the_longest_list_ranks_as_far_as_no_other_contradicts(read: list[str], expected: list[int | None]) -> None:
    source = "ok@1 x=1; ok@2 x=2; ok@3 x=3"
    assert ranks(longest(lists(*read)), source) == expected
    # However the reads are cut into chunks.
    for cut in range(len(read) + 1):
        parts = [longest(lists(*read[:cut])), longest(lists(*read[cut:]))]
        assert ranks(longest(joined(parts)), source) == expected


def test_a_value_that_two_operations_wrote_has_no_rank_and_what_failed_has_none() -> None:
    assert ranks(longest(lists("x12")), "ok@1 x=1; info x=1; ok@3 x=2; fail y=2") == [None, None, 1, None]
    assert ranks(longest(lists("x12")), "ok@1 x=1; fail x=1; ok@3 x=2") == [0, None, 1]


def test_only_reads_of_operations_that_happened_count(tmp_path: Path) -> None:
    appends = tuple(MicroOp("append", "x", n) for n in (1, 2))
    records: list[Record] = []
    results: list[tuple[Outcome, Json]] = [("ok", [1]), ("fail", [2, 1]), ("info", None), ("ok", [1, 2])]
    for index, (outcome, read) in enumerate(results):
        mops = (*(appends if index == 0 else ()), MicroOp("r", "x"))
        records.append(Invoke(index, index, index, index, "txn", None, mops))
        done = (*mops[:-1], MicroOp("r", "x", read))
        records.append(Complete(index, index, outcome, None, done if read else None, txn=index))
    write_history(records, tmp_path / "history")
    found = read_ranked(tmp_path / "history", read_writes(tmp_path / "history"))
    assert found.version.tolist() == [0, 1]
    assert found.txn.tolist() == [0, 0]
