"""The life of transactions until they are marked for commit or abort, and their leases.

Theory of operation. The controller through which a transaction was created or pinged last is its host, and keeps its
lease in memory.
1. A transaction is created against the *reference* of the active epoch, so all that share it can be committed together.
2. Its status goes from open to committing or to aborting, by compare-and-set, and from there to its end. The controller
   repeats its request to the processor until the store has it. After a crash another controller does that.
3. Each ping gives the record another version. A lease that runs out aborts the version that its host knows: a ping that
   went to another controller has made that one fail.
4. A controller that is silent, or was restarted, has lost its leases: those that it kept get a new one at another host,
   the whole lease. What was marked for commit or abort is requested again of the processor.
5. A stream that is being sealed takes no transaction. As that may begin while one is created, its writer gets it only
   if the seal had not begun when the record was there. If it had, the seal finds the record, and aborts it.
"""

from clusters.parts.cas_store import ABSENT, Cas, Next
from clusters.parts.procedures import Ask
from clusters.parts.routing import Procedure
from clusters.pravega import planted
from clusters.pravega.controller.metadata import (
    Superseded,
    changed,
    counted,
    held,
    history,
    listed,
    one,
    replaced,
    state,
)
from clusters.pravega.messages import Create, Created, Pending, Status
from clusters.pravega.records import ABORTS, COMMITS, ENDED, EPOCH_SHIFT, TXNS, Txn, encoded, txn_of
from clusters.pravega.shape import MS, STORE_PLACE, container_of
from clusters.pravega.site import Site
from harness.core.machine import NodeId

UNKNOWN = Status("unknown")
SEALED = ("sealing", "sealed")  # States of the stream.


def requested(request: Next | Cas) -> Procedure[None]:
    """Have a request to the processor recorded, however long that takes."""
    answer = None
    while answer is None:
        (answer,) = yield Ask(((STORE_PLACE, request),))


class Transactions:
    """The transactions, as one controller sees them."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._node, self._bugs = site.node, site.bugs
        self._lease_ns = site.parameters["lease_ms"] * MS
        self._leases: dict[int, tuple[int, int]] = {}  # By transaction: the version, and the end of the lease.

    def create(self) -> Procedure[Created | Status]:
        """A new transaction (1)."""
        if (yield from state()).name in SEALED:
            return Status("sealed")
        epochs = yield from history()
        active = epochs.active
        against = active if planted.TXN_AGAINST_DUPLICATE in self._bugs else epochs.epochs[active.reference]
        txn = against.number << EPOCH_SHIFT | (yield from counted("txn-ids"))
        answers = yield Ask(
            tuple((container_of(span.segment.number), Create(span.segment.of(txn))) for span in against.spans)
        )
        if None in answers:
            raise Superseded
        self._site.context.point("txn-segments-created")
        version = yield from replaced(f"{TXNS}{txn}", ABSENT, encoded(Txn(txn, "open", self._node)))
        if (yield from state()).name in SEALED:  # (5)
            yield from self.abort(txn)
            return Status("sealed")
        self._keep(txn, version)
        return Created(txn, against.spans)

    def ping(self, txn: int) -> Procedure[Status]:
        """Renew the lease of a transaction (3)."""
        entry = yield from held(f"{TXNS}{txn}")
        if entry.value is None:
            return (yield from self._ended(txn))
        record = txn_of(entry.value)
        if record.status != "open":
            return Status(record.status)
        after = Txn(txn, "open", self._node, pings=record.pings + 1)
        if record.host != self._node:
            self._site.context.sometimes("a lease moved to another controller")
        self._keep(txn, (yield from replaced(f"{TXNS}{txn}", entry.version, encoded(after))))
        return Status("open")

    def status(self, txn: int) -> Procedure[Status]:
        """The status of a transaction."""
        entry = yield from held(f"{TXNS}{txn}")
        return Status(txn_of(entry.value).status) if entry.value is not None else (yield from self._ended(txn))

    def commit(self, txn: int) -> Procedure[Status]:
        """Mark a transaction for commit, and request the commit; `sealed` if the stream's seal has aborted it (2)."""
        found = yield from self._marked(txn)
        if found.status in {"aborting", "aborted"} and (yield from state()).name in SEALED:
            return Status("sealed")
        return found

    def _marked(self, txn: int) -> Procedure[Status]:
        """The status of a transaction after it was marked for commit, if that was possible."""
        entry = yield from held(f"{TXNS}{txn}")
        if entry.value is None:
            return (yield from self._ended(txn))
        record = txn_of(entry.value)
        if planted.EPOCH_GC in self._bugs and (yield from history()).active.reference != record.epoch:
            return (yield from self.abort(txn))
        if record.status == "open":
            order = yield from counted("commit-order")
            marked = encoded(Txn(txn, "committing", self._node, order=order))
            after = yield from changed(f"{TXNS}{txn}", entry.version, marked)
            if not after.is_done:
                raise Superseded
            self._leases.pop(txn, None)
            self._site.context.point("commit-marked")
        elif record.status != "committing":
            return Status(record.status)
        yield from requested(Next(COMMITS))
        return Status("committing")

    def abort(self, txn: int, version: int | None = None) -> Procedure[Status]:
        """Mark a transaction for abort: whatever its version is, or only if it is this one (2, 3)."""
        entry = yield from held(f"{TXNS}{txn}")
        if entry.value is None:
            return (yield from self._ended(txn))
        record = txn_of(entry.value)
        is_raced = record.status == "committing" and planted.ABORT_RACES_COMMIT in self._bugs
        is_other = version is not None and version != entry.version and not is_raced
        if is_other and planted.ABORT_WITHOUT_VERSION not in self._bugs:
            self._site.context.sometimes("a lease ran out that another controller had renewed")
            return Status(record.status)
        if record.status == "open" or is_raced:
            yield from replaced(f"{TXNS}{txn}", entry.version, encoded(Txn(txn, "aborting", self._node)))
            self._leases.pop(txn, None)
            self._site.context.point("abort-marked")
        elif record.status != "aborting":
            return Status(record.status)
        yield from requested(Cas(f"{ABORTS}{txn}", ABSENT, b""))
        return Status("aborting")

    def pending(self) -> Procedure[Pending]:
        """The transactions that are marked for commit."""
        entries = yield from listed(TXNS)
        records = [txn_of(entry.value) for entry in entries if entry.value is not None]
        return Pending(tuple(record.id for record in records if record.status == "committing"))

    def expired(self) -> list[tuple[int, int]]:
        """The transactions whose leases have run out, with the versions that this controller knows; it forgets them."""
        now_ns = self._site.now_ns()
        found = [(txn, version) for txn, (version, end_ns) in self._leases.items() if end_ns <= now_ns]
        for txn, _ in found:
            del self._leases[txn]
        return found

    def expire(self, txn: int, version: int) -> Procedure[None]:
        """Abort a transaction whose lease has run out."""
        try:
            status = yield from self.abort(txn, version)
            if status.status == "aborting":
                self._site.context.sometimes("a lease ran out")
        except Superseded:
            pass

    def sweep(self, host: NodeId) -> Procedure[bool]:
        """Take over what that controller hosted; False if that was interrupted (4)."""
        try:
            for entry in (yield from listed(TXNS)):
                record = txn_of(entry.value or b"")
                if record.host != host or record.id in self._leases:
                    continue
                self._site.context.sometimes("a transaction was taken over from another controller")
                if planted.SWEEPER_ABORTS_ALL in self._bugs:
                    yield from changed(entry.name, entry.version, encoded(Txn(record.id, "aborting", self._node)))
                    yield from changed(f"{ABORTS}{record.id}", ABSENT, b"")
                elif record.status == "open":
                    yield from self.ping(record.id)
                elif record.status == "committing":
                    yield from one((STORE_PLACE, Next(COMMITS)))
                else:
                    yield from changed(f"{ABORTS}{record.id}", ABSENT, b"")
        except Superseded:
            return False
        return True

    def _keep(self, txn: int, version: int) -> None:
        self._leases[txn] = (version, self._site.now_ns() + self._lease_ns)

    def _ended(self, txn: int) -> Procedure[Status]:
        """The end of a transaction that has no record any more."""
        entry = yield from held(f"{ENDED}{txn}")
        return UNKNOWN if entry.value is None else Status(txn_of(entry.value).status)
