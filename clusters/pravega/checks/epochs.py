"""The shape of epochs, and what lies in them: guarantees G10, G11, G12, G14, G18 and G23.

1. `key-space-cut`: the segments of an epoch have every key once. A witness is an epoch.
2. `wrong-reference`: an epoch refers to itself, or is a copy of one that does: the same numbers, with the same keys.
   A witness is a copy.
3. `empty-roll`: a copy that is followed by another one was made for transactions, and holds some. One without any was
   made a second time. A witness is such a copy.
4. `misplaced-event`: an event is in a segment that has its key, and one of a transaction in a segment of an epoch with
   the transaction's reference. A witness is an event of a transaction.
5. `open-past`: a segment is sealed unless it is active. A witness is a segment of the past.
6. `foreign-reference`: the epoch in a transaction's id refers to itself. A witness is a transaction.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.troubles import Trouble, judgement
from clusters.pravega.checks.dumped import Epoch, Name, Stream, shown, stream
from clusters.pravega.records import EPOCH_SHIFT
from clusters.pravega.shape import SPACE, key_hash
from harness.core.verdict import Judgement

CHECKER: Final = "stream-epochs"
CUT, REFERENCE, EMPTY = "key-space-cut", "wrong-reference", "empty-roll"
MISPLACED, OPEN, FOREIGN = "misplaced-event", "open-past", "foreign-reference"
ANOMALIES: Final = {
    CUT: "A key has no segment in an epoch, or several.",
    REFERENCE: "An epoch is not a copy of the one that it refers to.",
    EMPTY: "An epoch was made for transactions, and lacks them.",
    MISPLACED: "An event is in a segment, or an epoch, where it does not belong.",
    OPEN: "A segment that is not active any more takes events.",
    FOREIGN: "A transaction was created against a copy of an epoch.",
}


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the epochs that a run shows at rest. Raises HistoryError if they are damaged."""
    found = stream(history, context)
    if found.lacking is not None:
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=dict.fromkeys(ANOMALIES, found.lacking))
    spans = {span.name: span for epoch in found.epochs for span in epoch.spans}
    active = [span.name for span in found.epochs[-1].spans]
    txns = dict.fromkeys(event.txn for held in found.segments.values() for event in held.events if event.txn)
    troubles = [*_cuts(found.epochs), *_references(found.epochs), *_empty(found), *_misplaced(found), *_foreign(found)]
    for name in spans:
        if name not in active and not found.segments[name].is_sealed:
            sentence = f"Segment {shown(name)} is not in the last epoch, and was never sealed: no reader gets past it."
            troubles.append(Trouble(OPEN, sentence, name))
    copies = [number for number, epoch in enumerate(found.epochs) if epoch.reference != number]
    return judgement(
        CHECKER,
        ANOMALIES,
        troubles,
        {
            CUT: len(found.epochs),
            REFERENCE: len(copies),
            EMPTY: sum(1 for _ in _rolled(found.epochs)),
            MISPLACED: sum(1 for held in found.segments.values() for event in held.events if event.txn),
            OPEN: len(spans) - len(active),
            FOREIGN: len(txns),
        },
        facts={"epochs": len(found.epochs), "segments": len(spans)},
    )


def _cuts(epochs: tuple[Epoch, ...]) -> Iterator[Trouble]:
    for number, epoch in enumerate(epochs):
        edge = 0
        for span in epoch.spans:
            if span.low != edge:
                sentence = f"In epoch {number} segment {shown(span.name)} begins at {span.low}, and not at {edge}."
                yield Trouble(CUT, sentence, (number, edge))
            edge = span.high
        if edge != SPACE:
            yield Trouble(CUT, f"The segments of epoch {number} end at {edge}, and not at {SPACE}.", (number, edge))


def _references(epochs: tuple[Epoch, ...]) -> Iterator[Trouble]:
    for number, epoch in enumerate(epochs):
        if not 0 <= epoch.reference <= number:
            yield Trouble(REFERENCE, f"Epoch {number} refers to epoch {epoch.reference}.", (number,))
            continue
        root = epochs[epoch.reference]
        if root.reference != epoch.reference:
            sentence = f"Epoch {number} refers to epoch {epoch.reference}, which refers to {root.reference} itself."
            yield Trouble(REFERENCE, sentence, (number,))
        elif [span[:3] for span in epoch.spans] != [span[:3] for span in root.spans]:
            sentence = f"Epoch {number} refers to epoch {epoch.reference}, and has other segments or other keys."
            yield Trouble(REFERENCE, sentence, (number,))


def _rolled(epochs: tuple[Epoch, ...]) -> Iterator[int]:
    """The epochs that were made for transactions: after a scale, or a copy, come pairs of copies."""
    number = 1
    while number < len(epochs):
        if epochs[number].reference == number:
            number += 1
        else:
            yield number
            number += 2


def _empty(found: Stream) -> Iterator[Trouble]:
    for number in _rolled(found.epochs):
        own = [span.name for span in found.epochs[number].spans if span.epoch == number]
        if not any(found.segments[name].events for name in own):
            yield Trouble(EMPTY, f"Epoch {number} was made to roll transactions, and holds none.", (number,))


def _misplaced(found: Stream) -> Iterator[Trouble]:
    homes: dict[Name, list[int]] = {}
    keys: dict[Name, tuple[int, int]] = {}
    for epoch in found.epochs:
        for span in epoch.spans:
            homes.setdefault(span.name, []).append(epoch.reference)
            keys[span.name] = (span.low, span.high)
    for name, held in found.segments.items():
        low, high = keys[name]
        for offset, event in enumerate(held.events):
            at = f"value {event.value} of key {event.key} stands at offset {offset} of segment {shown(name)}"
            if not low <= key_hash(event.key) < high:
                yield Trouble(MISPLACED, f"{at.capitalize()}, which does not have that key.", (*name, offset))
            elif event.txn and event.txn >> EPOCH_SHIFT not in homes[name]:
                created = event.txn >> EPOCH_SHIFT
                sentence = f"{at.capitalize()}; its transaction belongs to epoch {created}, and the segment to others."
                yield Trouble(MISPLACED, sentence, (*name, offset))


def _foreign(found: Stream) -> Iterator[Trouble]:
    for txn in dict.fromkeys(event.txn for held in found.segments.values() for event in held.events if event.txn):
        created = txn >> EPOCH_SHIFT
        if created >= len(found.epochs) or found.epochs[created].reference != created:
            sentence = f"A transaction with events in the stream was created against epoch {created}, which is a copy."
            yield Trouble(FOREIGN, sentence, (txn,))


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
