"""The two ends of a stream: its seal, and its truncation.

Theory of operation. Both are requested by a record, and carried out by the processor.
1. A stream that is being sealed gets no new transactions. The open ones are aborted; those that are marked for commit
   are committed. Only when no transaction is left the active segments are sealed, and with them the stream; these are
   read after the transactions, as a commit may roll until it ends.
2. A transaction whose record was written meanwhile is never handed to its writer: see transactions.py.
3. A stream cut is an epoch with an offset in each of its segments. Before it are the segments of earlier epochs alone,
   and in its own segments the events below the offsets: segments count, not numbers, which copies share.
4. A truncation is recorded before it is carried out, and each of its commands has no effect the second time. It is made
   where the stream ended at the last one, so that readers have had some time.
"""

from clusters.parts.cas_store import ABSENT
from clusters.parts.procedures import Ask
from clusters.parts.routing import Procedure
from clusters.pravega import planted
from clusters.pravega.controller.metadata import Stream, Superseded, changed, history, listed, replaced
from clusters.pravega.messages import Contents, Fetch, Ok, Seal, Truncate
from clusters.pravega.records import (
    ABORTS,
    STATE,
    TRUNCATE,
    TRUNCATION,
    TXNS,
    Cut,
    Epoch,
    History,
    Segment,
    State,
    Truncation,
    Txn,
    encoded,
    txn_of,
)
from clusters.pravega.shape import container_of
from clusters.pravega.site import Site

WHOLE = -1
Step = Procedure[None]


class Bounds:
    """Seals and truncations, as one controller carries them out."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._bugs = site.bugs

    def begin_seal(self, records: Stream) -> Step:
        """Enter the state in which a stream gets no new transactions."""
        yield from replaced(STATE, records.versions[STATE], encoded(State("sealing")))
        self._site.context.point("seal-begun")

    def go_on_sealing(self, records: Stream) -> Step:
        """Abort the open transactions; seal the stream once it has no transactions any more (1)."""
        entries = yield from listed(TXNS)
        txns = [txn_of(entry.value or b"") for entry in entries]
        for entry, txn in zip(entries, txns, strict=True):
            if txn.status == "open":
                aborting = encoded(Txn(txn.id, "aborting", txn.host))
                if (yield from changed(entry.name, entry.version, aborting)).is_done:
                    yield from changed(f"{ABORTS}{txn.id}", ABSENT, b"")
        if any(txn.status == "committing" for txn in txns):
            self._site.context.sometimes("a seal waited for transactions that were marked for commit")
        left = [txn for txn in txns if txn.status != "committing" or planted.SEAL_DROPS_COMMITTING not in self._bugs]
        if left:
            return
        active = (yield from history()).active  # Not as read before: a roll may have moved it (1).
        yield from _all_ok([Seal(span.segment) for span in active.spans])
        self._site.context.point("seal-sealed")
        yield from replaced(STATE, records.versions[STATE], encoded(State("sealed")))
        self._site.context.sometimes("a stream was sealed")

    def truncate(self, records: Stream) -> Step:
        """Carry out a truncation that was requested (4)."""
        versions, history, last = records.versions, records.history, records.truncation
        truncation = Truncation(last.next if last else None, (yield from _end_of(history.active)))
        yield from replaced(TRUNCATION, versions[TRUNCATION], encoded(truncation))
        self._site.context.point("truncation-recorded")
        if truncation.done is not None:
            yield from _all_ok(self._commands(history, truncation.done))
            self._site.context.sometimes("a stream was truncated")
        self._site.context.point("truncation-done")
        yield from replaced(TRUNCATE, versions[TRUNCATE], None)

    def _commands(self, history: History, cut: Cut) -> list[Truncate]:
        """The commands that take away exactly the events before the cut (3)."""
        offsets = dict(cut.offsets)
        epochs = history.epochs[: cut.epoch + 1]
        if planted.CUT_IGNORES_DUPLICATES in self._bugs:
            epochs = history.listed()
        numbers = {segment.number for segment in offsets}
        found: dict[Segment, int] = {}
        for epoch in epochs:
            for span in epoch.spans:
                if span.segment in offsets or epoch.number <= cut.epoch or span.segment.number in numbers:
                    found[span.segment] = offsets.get(span.segment, WHOLE)
        return [Truncate(segment, offset) for segment, offset in found.items()]


def _end_of(active: Epoch) -> Procedure[Cut]:
    """The stream cut at the present end of the stream."""
    places: dict[str, list[Segment]] = {}
    for span in active.spans:
        places.setdefault(container_of(span.segment.number), []).append(span.segment)
    answers = yield Ask(tuple((place, Fetch(tuple(segments), ())) for place, segments in places.items()))
    if not all(isinstance(answer, Contents) for answer in answers):
        raise Superseded
    found = [content for answer in answers if isinstance(answer, Contents) for content in answer.found]
    return Cut(active.number, tuple((content.segment, content.length) for content in found))


def _all_ok(commands: list[Seal] | list[Truncate]) -> Step:
    answers = yield Ask(tuple((container_of(each.segment.number), each) for each in commands))
    if not all(isinstance(answer, Ok) for answer in answers):
        raise Superseded
