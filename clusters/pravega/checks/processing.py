"""The work of the stream's processor, by the changes of its records: guarantees G13, G14 and G15.

1. `overlapping-work`: an epoch that a scale made becomes current while the stream is scaling, and the two of a roll
   while it commits; between the two the stream is active. A witness is a change of the current epoch.
2. `changed-batch`: a batch of transactions is committed as it was recorded first, whoever goes on with it. A witness is
   a batch.
3. `batch-order`: in every segment transactions come in the order of the batches, and of each batch. A witness is a
   transaction that follows another one in a segment.
4. `starved-scale`: a planned scale waits for a few batches at most. A witness is a scale that was carried out.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.troubles import Trouble, judgement
from clusters.pravega.checks.dumped import Change, Stream, shown, stream
from harness.core.verdict import Judgement

CHECKER: Final = "stream-processing"
OVERLAP, CHANGED, ORDER, STARVED = "overlapping-work", "changed-batch", "batch-order", "starved-scale"
ANOMALIES: Final = {
    OVERLAP: "A scale and a commit were carried out at the same time.",
    CHANGED: "A batch of transactions was recorded again, and was another one.",
    ORDER: "A segment has transactions in another order than that in which they were committed.",
    STARVED: "A planned scale waited while one batch of transactions after the other was committed.",
}
PATIENCE: Final = 6  # Batches. One goes before each attempt at a scale, and an attempt may fail.


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the processor, from the changes that a run shows. Raises HistoryError if they are damaged."""
    found = stream(history, context)
    if not found.changes:
        reason = "the metadata node showed no changes"
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=dict.fromkeys(ANOMALIES, reason))
    batches = _batches(found.changes)
    blocks = [block for block in (_blocks(found, name) for name in found.segments) if block]
    return judgement(
        CHECKER,
        ANOMALIES,
        [*_overlaps(found.changes), *_changed(found.changes), *_disordered(found, batches), *_starved(found.changes)],
        {
            OVERLAP: sum(one != other for one, other in pairwise(_epochs(found.changes))),
            CHANGED: len(batches),
            ORDER: sum(len(block) - 1 for block in blocks),
            STARVED: sum(change.what == "scale-done" for change in found.changes),
        },
    )


def _epochs(changes: Sequence[Change]) -> list[int]:
    return [0, *(int(change.values[0]) for change in changes if change.what == "epoch")]


def _overlaps(changes: Sequence[Change]) -> Iterator[Trouble]:
    """1."""
    state, current = "active", 0
    for change in changes:
        if change.what == "state":
            before, state = state, str(change.values[0])
            if {before, state} == {"scaling", "committing"}:
                sentence = f"The stream went from {before} to {state}, and was not active between them."
                yield Trouble(OVERLAP, sentence, (before, state))
        elif change.what == "epoch" and change.values[0] != current:
            before_epoch, current = current, int(change.values[0])
            allowed = ("scaling",) if current == before_epoch + 1 else ("committing", "sealing")
            if state not in allowed:
                sentence = f"Epoch {current} followed epoch {before_epoch} while the stream was {state}."
                yield Trouble(OVERLAP, sentence, (current, state))


def _recorded(changes: Sequence[Change]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """Each record of a batch, with the one before if that was not ended."""
    open_batch: tuple[int, ...] | None = None
    for change in changes:
        if change.what == "committing":
            txns = tuple(int(txn) for txn in change.values[1])
            yield txns, open_batch
            open_batch = txns
        elif change.what == "committed":
            open_batch = None


def _batches(changes: Sequence[Change]) -> list[tuple[int, ...]]:
    """The batches as they were recorded first."""
    return [txns for txns, before in _recorded(changes) if before is None]


def _changed(changes: Sequence[Change]) -> Iterator[Trouble]:
    """2."""
    for txns, before in _recorded(changes):
        if before is not None and txns != before:
            sentence = (
                f"A batch of {len(before)} transactions was recorded again as one of {len(txns)}, and was another one."
            )
            yield Trouble(CHANGED, sentence, (before, txns))


def _blocks(found: Stream, name: tuple[int, int]) -> list[int]:
    """The transactions of a segment, in the order of their first events."""
    return list(dict.fromkeys(event.txn for event in found.segments[name].events if event.txn))


def _disordered(found: Stream, batches: Sequence[Sequence[int]]) -> Iterator[Trouble]:
    """3."""
    rank = {txn: at for at, txn in reversed([*enumerate(txn for batch in batches for txn in batch)])}
    for name in found.segments:
        for one, other in pairwise(_blocks(found, name)):
            if one in rank and other in rank and rank[other] < rank[one]:
                sentence = (
                    f"In segment {shown(name)} transaction {one} comes before {other}, which was committed before it."
                )
                yield Trouble(ORDER, sentence, (*name, one, other))


def _starved(changes: Sequence[Change]) -> Iterator[Trouble]:
    """4."""
    waited: int | None = None
    for change in changes:
        if change.what == "scale-planned":
            waited = waited or 0
        elif change.what == "scale-done" or (change.what == "state" and change.values[0] in {"scaling", "sealing"}):
            waited = None
        elif change.what == "committed" and waited is not None:
            waited += 1
            if waited == PATIENCE:
                yield Trouble(STARVED, f"A planned scale had not begun after {waited} batches of transactions.", ())


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
