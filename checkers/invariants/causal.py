"""Causal reverse, and sequential: reads that show a later write and miss an earlier one.

*causal-reverse* (and Jepsen's comments): a read that shows a write must show every write that ended before the shown
one began. Among the writes that a read shows, the one that began last requires all that the others require.

*sequential*: a client writes the parts of a key one after the other, and reads return them from the last to the first:
[key, [newest, ..., oldest]], with null for a missing part. After a part that is there, all the rest must be there.

Witnesses: for causal-reverse, reads that show a write which other writes precede; for sequential, reads that show a
part other than the oldest.
"""

from collections.abc import Iterator, Sequence
from itertools import dropwhile, islice
from typing import Final

import numpy as np

from checkers.history.troubles import Trouble, judgement
from checkers.invariants.members import Members, collections
from checkers.invariants.operations import Op, Token, invariant, keyed, shown, token
from harness.core.columns import NEVER
from harness.core.verdict import Judgement

CAUSAL: Final = "causal-reverse"
SEQUENTIAL: Final = "sequential"
HOLE: Final = "sequence-hole"
CAUSAL_ANOMALIES: Final = {CAUSAL: "A read shows a write, and misses one that had ended before that began."}
SEQUENTIAL_ANOMALIES: Final = {HOLE: "A client's later write is seen, and an earlier one is not."}


def judged_causal(operations: Sequence[Op]) -> Judgement:
    """The judgement of reads that miss a write which ended before one that they show began. O(elements read)."""
    troubles: list[Trouble] = []
    witnesses = 0
    for name, members in collections(operations).items():
        for trouble, is_witness in _reversals(name, members):
            witnesses += is_witness
            troubles += [trouble] if trouble is not None else []
    return judgement(CAUSAL, CAUSAL_ANOMALIES, troubles, {CAUSAL: witnesses})


def _reversals(name: Token, members: Members) -> Iterator[tuple[Trouble | None, bool]]:
    """For each read its violation or None, and True if the read is a witness."""
    began: dict[Token, int] = {}
    for put in members.puts:
        began.setdefault(put.element, put.number)
    done = sorted((put for put in members.puts if put.after != NEVER), key=lambda put: (put.after, put.number))
    ends = np.array([put.after for put in done], np.int64)
    for read in members.reads:
        seen = frozenset(read.elements)
        latest = max((each for each in read.elements if each in began), key=began.__getitem__, default=None)
        if latest is None:
            continue
        required = int(np.searchsorted(ends, began[latest], side="right"))
        missing = next((put for put in islice(done, required) if put.element not in seen), None)
        if missing is None:
            yield None, required > 0
            continue
        text = (
            f"T{read.number} read {shown(latest)} in {shown(name)}, which T{began[latest]} began to write after "
            f"T{missing.number} had written {shown(missing.element)}; but it does not show that."
        )
        ops = (missing.number, began[latest], read.number)
        yield Trouble(CAUSAL, text, (str(name), *ops), ops), True


def judged_sequential(operations: Sequence[Op]) -> Judgement:
    """The judgement of reads of [newest, ..., oldest]: no part may be missing after one that is there."""
    troubles, witnesses = [], 0
    for op in operations:
        parts = keyed(op.value) if op.f == "read" and op.is_ok else None
        if parts is None:
            continue
        key, values = parts
        there = list(dropwhile(lambda value: value is None, values))
        witnesses += len(there) > 1
        if None in there:
            text = (
                f"T{op.number} read {shown(token(there[0]))} of {shown(token(key))}, and then nothing where its client "
                "had written earlier."
            )
            troubles.append(Trouble(HOLE, text, (str(token(key)), op.number), (op.number,)))
    return judgement(SEQUENTIAL, SEQUENTIAL_ANOMALIES, troubles, {HOLE: witnesses})


CHECKS: Final = (
    invariant(CAUSAL, CAUSAL_ANOMALIES, judged_causal),
    invariant(SEQUENTIAL, SEQUENTIAL_ANOMALIES, judged_sequential),
)
