"""The order of a key's versions, from the lists that were read."""

from pathlib import Path

import numpy as np
import pytest

from checkers.history.streams import read_writes
from checkers.history.version_ranks import Lists, joined, lists_of, longest, ranked, read_ranked
from harness.core.columns import NEVER
from harness.core.record import Complete, Invoke, Json, MicroOp, Outcome, Record
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.streams.cases import in_blocks_of
from tests.worlds.streams.language import key_of, source_of, writes


def lists(*texts: str) -> Lists:
    """Lists that were read, as "x12": of x the list [1, 2]."""
    lengths = [len(text) - 1 for text in texts]
    elements = [int(digit) for text in texts for digit in text[1:]]
    return lists_of(*(np.array(column, np.int64) for column in ([key_of(t[0]) for t in texts], lengths, elements)))


def ranks(source: str, *parts: Lists) -> list[int | None]:
    """The rank of each write of the source, None where it is not known: the same for blocks of any size."""
    written = source_of(writes(source))
    found = []
    for rows in (1, 2, 100):
        with in_blocks_of(rows):
            found.append(ranked(written, parts).version.tolist())
    assert found[0] == found[1] == found[2]
    return [None if rank == NEVER else rank for rank in found[0]]


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
    assert ranks(source, longest(lists(*read))) == expected
    # However the reads are cut into chunks.
    for cut in range(len(read) + 1):
        parts = [longest(lists(*read[:cut])), longest(lists(*read[cut:]))]
        assert ranks(source, *parts) == ranks(source, longest(joined(parts))) == expected


def test_keys_of_one_block_or_of_several_are_ranked_alike() -> None:
    read = [longest(lists("x21", "z9", "y43")), longest(lists("y4356", "v", "z987"))]
    source = "ok@1 x=1 y=3; ok@2 x=2 z=9; ok@3 y=4 z=8 u=1; ok@4 v=1 y=6 y=5; ok@5 w=3 z=7"
    assert ranks(source, *read) == [1, 1, 0, 0, 0, 1, None, None, 3, 2, None, 2]


def test_a_value_that_two_operations_wrote_has_no_rank_and_what_failed_has_none() -> None:
    assert ranks("ok@1 x=1; info x=1; ok@3 x=2; fail y=2", longest(lists("x12"))) == [None, None, 1, None]
    assert ranks("ok@1 x=1; fail x=1; ok@3 x=2", longest(lists("x12"))) == [0, None, 1]


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
