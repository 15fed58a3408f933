"""The processor of a stream: commits transactions, in place or rolling, aborts them, and scales, one after the other.

Theory of operation. The controller with the lease does what the records request. It may lose the lease without
noticing, and die anywhere; another one then goes on from the records. So each step is a compare-and-set on what was
read, or has no effect the second time.
1. What a commit comprises, and in which order, is recorded before anything is merged: `Committing`. It takes the lowest
   epoch that has marked transactions, and of these the first in the order of their marks.
2. The state excludes what another controller may be doing: committing and scaling are entered from active only. Who
   goes on with a commit or a scale writes the state again, so that the one before cannot end it any more.
3. If the transactions' epoch is the reference of the active one, they are merged into the active segments: there are
   segments of the same numbers. All segments get them in the same order.
4. Else they roll. The active epoch `a` is pinned. Epoch a + 1 has duplicates of the segments that the transactions were
   created against, with their events, sealed; epoch a + 2 has duplicates of the segments of `a`. Both are recorded at
   once, the segments of `a` are sealed, and only then `current` moves to a + 2.
5. So what follows in a later epoch was appended later: successors are handed out once all predecessors are sealed.
Source: PDP 24, "Commit Transaction" and "Implementation Details".
"""

from collections.abc import Sequence
from contextlib import suppress

from clusters.parts.cas_store import ABSENT, Cas, Get
from clusters.parts.procedures import Ask, Sleep
from clusters.parts.routing import Procedure
from clusters.pravega import planted
from clusters.pravega.controller.bounds import Bounds
from clusters.pravega.controller.marks import Marks
from clusters.pravega.controller.metadata import Stream, Superseded, each, listed, replaced, stream
from clusters.pravega.controller.scaling import Scaling
from clusters.pravega.messages import Create, Delete, Merge, Ok, Seal, ToStore
from clusters.pravega.records import (
    ABORTS,
    COMMITS,
    COMMITTING,
    ENDED,
    HISTORY,
    SEAL,
    STATE,
    TRUNCATE,
    TXNS,
    Committing,
    Epoch,
    History,
    Span,
    State,
    Txn,
    TxnStatus,
    encoded,
    txn_of,
)
from clusters.pravega.shape import MS, container_of
from clusters.pravega.site import Site

POLL_NS = 20 * MS
PLAN_NS = 60 * MS
Step = Procedure[None]


class Processor:
    """The processor, as one controller runs it. `has_lease` is set by the controller."""

    has_lease = False

    def __init__(self, site: Site) -> None:
        self._site = site
        self._node, self._bugs = site.node, site.bugs
        self._batch = site.parameters["batch"]
        self._scaling = Scaling(site)
        self._bounds = Bounds(site)
        self._marks = Marks(site)
        self._own: Committing | None = None  # The last roll that this controller has begun.

    def plan(self) -> Procedure[None]:
        """Plan scales, which have their turn later; with a planted bug carry them out, whatever the state is."""
        while True:
            if self.has_lease:
                yield from _alone(self._plan())
            yield Sleep(PLAN_NS)

    def _plan(self) -> Step:
        yield from self._scaling.propose((yield from stream()))
        if planted.NO_STATE_CAS in self._bugs:
            yield from self._scaling.finish((yield from stream()))

    def serve(self) -> Procedure[None]:
        """Do what is requested, as long as the controller lives."""
        while True:
            if self.has_lease:
                try:
                    yield from self._marks.advance()
                    yield from self._work((yield from stream()))
                except Superseded:
                    self._site.context.sometimes("a processor found that another one had gone on")
            yield Sleep(POLL_NS)

    def _work(self, records: Stream) -> Step:
        if records.state.name == "scaling":
            records.versions[STATE] = yield from replaced(STATE, records.versions[STATE], encoded(State("scaling")))
            yield from self._scaling.finish(records)
            return
        if records.aborts:
            yield from self._abort_all(records)
        if records.state.name == "sealing" and records.committing is None:
            yield from self._bounds.go_on_sealing(records)
            records = yield from stream()
        if records.committing is not None or records.versions[COMMITS]:
            yield from self._commit(records)
            if planted.NO_FAIR_QUEUE in self._bugs:
                return
            records = yield from stream()
        if records.state.name == "committing" and records.committing is None:
            yield from replaced(STATE, records.versions[STATE], encoded(State()))
            return
        if records.versions[TRUNCATE] and records.transition is None:
            yield from self._bounds.truncate(records)
            return
        if records.state.name != "active":
            return
        if records.versions[SEAL]:
            yield from self._bounds.begin_seal(records)
            return
        if records.transition is not None:
            yield from self._scaling.begin(records)

    # Aborts.

    def _abort_all(self, records: Stream) -> Step:
        """Delete the segments of the transactions to be aborted, all at once, and record their end."""
        entries = yield from each([Get(f"{TXNS}{txn}") for txn in records.aborts])
        found = [txn_of(entry.value) for entry in entries if entry.value is not None]
        aborting = [txn for txn in found if txn.status == "aborting"]
        if aborting:
            epochs = records.history.epochs
            segments = [span.segment.of(txn.id) for txn in aborting for span in epochs[txn.epoch].spans]
            yield from asked([Delete(segment) for segment in segments])
            self._site.context.point("txn-segments-deleted")
            yield from self._end([txn.id for txn in aborting], "aborted")
        names = [f"{ABORTS}{txn}" for txn in records.aborts]
        yield from each([Cas(name, records.versions[name], None) for name in names])

    def _end(self, txns: Sequence[int], status: TxnStatus) -> Step:
        """Record how transactions ended, in their order, and forget what they were."""
        entries = yield from each([Get(f"{TXNS}{txn}") for txn in txns])
        yield from each([Cas(f"{ENDED}{txn}", ABSENT, encoded(Txn(txn, status, self._node))) for txn in txns])
        yield from each([Cas(entry.name, entry.version, None) for entry in entries])

    # Commits.

    def _commit(self, records: Stream) -> Step:
        """Commit one batch."""
        versions = records.versions
        committing = records.committing
        if committing is None or planted.NO_CTR in self._bugs:
            collected = yield from self._collected()
            if collected is None:
                yield from replaced(COMMITS, versions[COMMITS], None)
                return
            committing = collected
            yield from self._record(versions, committing)
        else:
            self._site.context.sometimes("a processor went on with a commit of another one")
        self._site.context.point("commit-recorded")
        if records.state.name in {"active", "committing"}:
            versions[STATE] = yield from replaced(STATE, versions[STATE], encoded(State("committing")))
        active = records.history.active
        is_rolling = active.reference != committing.epoch or committing.active is not None
        if is_rolling and planted.MERGE_INTO_ACTIVE not in self._bugs:
            yield from self._roll(records, committing)
        else:
            if active.number != committing.epoch:
                self._site.context.sometimes("a transaction was committed in place after a roll")
            yield from self._merge_all(active.spans, active.spans, records.history, committing)
        yield from self._end(committing.txns, "committed")
        self._site.context.point("commit-ended")
        yield from self._record(versions, None)
        if records.state.name in {"active", "committing"}:
            yield from replaced(STATE, versions[STATE], encoded(State()))

    def _record(self, versions: dict[str, int], committing: Committing | None) -> Step:
        """Record what is being committed; None: nothing any more."""
        value = b"" if committing is None else encoded(committing)
        versions[COMMITTING] = yield from replaced(COMMITTING, versions[COMMITTING], value)

    def _collected(self) -> Procedure[Committing | None]:
        """The next batch (1)."""
        entries = yield from listed(TXNS)
        records = [txn_of(entry.value) for entry in entries if entry.value is not None]
        marked = [record for record in records if record.status == "committing"]
        if not marked:
            return None
        epoch = min(record.epoch for record in marked)
        if planted.ANY_EPOCH_FIRST in self._bugs:
            epoch = max(record.epoch for record in marked)
        of_epoch = [record for record in marked if record.epoch == epoch]
        if planted.CUT_BEFORE_SORT in self._bugs:
            of_epoch = sorted(of_epoch, key=lambda record: -record.id)[: self._batch]
        of_epoch.sort(key=lambda record: record.order)
        if len(of_epoch) > self._batch:
            self._site.context.sometimes("a batch was full")
        return Committing(epoch, tuple(record.id for record in of_epoch[: self._batch]))

    def _merge_all(
        self, targets: Sequence[Span], active: Sequence[Span], epochs: History, committing: Committing
    ) -> Step:
        """Merge the transactions, in their order, into those segments: in all at once, but one after the other (3).

        A transaction's segments have the names of those that it was created against.
        """
        named = active if planted.WRONG_TXN_EPOCH_NAME in self._bugs else epochs.epochs[committing.epoch].spans
        sources = {span.segment.number: span.segment for span in named}
        ways: list[list[ToStore]] = []
        for span in targets:
            number = span.segment.number
            source = sources.get(number, span.segment)
            if planted.MERGE_INTO_ACTIVE in self._bugs:
                source = epochs.epochs[committing.epoch].at(span.low)
            txns = list(committing.txns)
            if planted.ORDER_PER_SEGMENT in self._bugs and number % 2:
                txns.reverse()
            ways.append([Merge(span.segment, source.of(txn)) for txn in txns])
        if planted.BATCH_UNCHAINED in self._bugs:
            yield from asked([merge for way in ways for merge in way])
            return
        for merges in zip(*ways, strict=True):
            yield from asked(merges)
            if planted.MERGE_NOT_ATOMIC in self._bugs:
                self._site.context.point("merged-one")
                yield from asked([Delete(merge.source) for merge in merges if isinstance(merge, Merge)])
            self._site.context.point("merged-one")

    def _roll(self, records: Stream, committing: Committing) -> Step:
        """Commit transactions of an epoch that is over (4)."""
        versions, epochs = records.versions, records.history
        if committing.active is None:
            committing = Committing(committing.epoch, committing.txns, epochs.current)
            yield from self._record(versions, committing)
            self._own = committing
            self._site.context.point("roll-pinned")
        elif committing != self._own:
            self._site.context.sometimes("a processor went on with a roll of another one")
        pinned = epochs.current if planted.ROLL_NOT_PINNED in self._bugs else committing.active
        assert pinned is not None
        if epochs.current > pinned:
            return  # The roll was finished; only its end was not recorded.
        active, root = epochs.epochs[pinned], epochs.epochs[committing.epoch]
        x, y = pinned + 1, pinned + 2
        rolled = Epoch(x, root.reference, copies(root.spans, x))
        again = Epoch(y, active.reference, copies(active.spans, y))
        yield from asked([Create(span.segment) for span in rolled.spans])
        self._site.context.point("roll-created")
        yield from self._merge_all(rolled.spans, active.spans, epochs, committing)
        self._site.context.point("roll-merged")
        seals = [Seal(span.segment) for span in rolled.spans]
        if planted.DUP_SEAL_NOT_AWAITED in self._bugs:
            self._site.procedures.run(_until_done(seals))
        else:
            yield from asked(seals)
        self._site.context.point("roll-sealed")
        yield from asked([Create(span.segment) for span in again.spans])
        if planted.EPOCHS_SWAPPED in self._bugs:
            rolled, again = again, rolled
        if planted.TXN_EPOCH_UNLISTED in self._bugs:
            again, y = Epoch(x, again.reference, again.spans), x
        if planted.EPOCH_RECORD_REWRITTEN in self._bugs and len(epochs.epochs) > x:
            again = Epoch(y, rolled.reference, again.spans)
            epochs = History(epochs.epochs[:x], epochs.current)
        if len(epochs.epochs) == x:
            pair = (again,) if y == x else (rolled, again)
            epochs = History((*epochs.epochs, *pair), epochs.current)
            versions[HISTORY] = yield from replaced(HISTORY, versions[HISTORY], encoded(epochs))
        self._site.context.point("roll-recorded")
        yield from asked([Seal(span.segment) for span in active.spans])
        self._site.context.point("roll-active-sealed")
        yield from replaced(HISTORY, versions[HISTORY], encoded(History(epochs.epochs, y)))
        self._site.context.sometimes("a transaction was rolled")
        self._site.context.point("roll-moved")


def copies(spans: Sequence[Span], epoch: int) -> tuple[Span, ...]:
    """Duplicates of those segments in another epoch."""
    return tuple(Span(span.low, span.high, span.segment.copy(epoch)) for span in spans)


def asked(requests: Sequence[ToStore]) -> Step:
    """Have segment stores carry out commands; raises Superseded unless all are."""
    answers = yield Ask(tuple((place(request), request) for request in requests))
    if not all(isinstance(answer, Ok) for answer in answers):
        raise Superseded


def _alone(step: Step) -> Step:
    """That step, without more if another controller has gone on."""
    with suppress(Superseded):
        yield from step


def _until_done(requests: Sequence[ToStore]) -> Step:
    """With a planted bug: have commands carried out, unless this controller dies before."""
    is_done = False
    while not is_done:
        answers = yield Ask(tuple((place(request), request) for request in requests))
        is_done = None not in answers


def place(request: ToStore) -> str:
    """The container that serves a command."""
    match request:
        case Merge(target, _):
            return container_of(target.number)
        case Create(segment) | Seal(segment) | Delete(segment):
            return container_of(segment.number)
        case _:
            raise AssertionError(request)
