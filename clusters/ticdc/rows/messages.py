"""Locks and versions, the commands of a region's log, and the requests of transactions to a region with their answers.

Requests travel in a `ToRegion`, answers in a `FromRegion`. Every request may come twice, or late.
"""

from typing import Literal

from msgspec import Struct

from clusters.ticdc.shape import Key
from harness.core.machine import NodeId
from harness.core.record import Json

Elements = tuple[Json, ...]  # The value of a row: a list. Empty: the row does not exist.
Kind = Literal["put", "lock"]  # A lock mutation changes nothing: it conflicts with what would.


class Lock(Struct, frozen=True, tag=True):
    """A lock on a key, with the value that its transaction would write there.

    The lock on the primary key decides for all: `ttl_ms` counts from `start_ts`, and the transaction commits at
    `min_commit_ts` or above. Of a large transaction `generation` counts the flushes.
    """

    key: Key
    kind: Kind
    primary: Key
    start_ts: int
    ttl_ms: int
    min_commit_ts: int
    is_large: bool
    generation: int
    elements: Elements


class Write(Struct, frozen=True, tag=True):
    """A committed version of a key."""

    commit_ts: int
    start_ts: int
    kind: Kind
    elements: Elements


class PutLocks(Struct, frozen=True, tag=True):
    """In the log: set these locks. `is_rewrite`: they are there already, and only their lifetime or bound rises."""

    locks: tuple[Lock, ...]
    is_rewrite: bool = False


class CommitKeys(Struct, frozen=True, tag=True):
    """In the log: the transaction's locks on these keys become versions."""

    start_ts: int
    commit_ts: int
    keys: tuple[Key, ...]


class RollBackKeys(Struct, frozen=True, tag=True):
    """In the log: the transaction's locks on these keys go. `is_recorded`: it can never lock them again."""

    start_ts: int
    keys: tuple[Key, ...]
    is_recorded: bool = True


Command = PutLocks | CommitKeys | RollBackKeys


class Mutation(Struct, frozen=True, tag=True):
    """What a transaction would do to a key."""

    key: Key
    kind: Kind
    elements: Elements = ()


class Prewrite(Struct, frozen=True, tag=True):
    """Lock these keys, with their new values."""

    start_ts: int
    primary: Key
    mutations: tuple[Mutation, ...]
    ttl_ms: int
    min_commit_ts: int
    is_large: bool = False
    generation: int = 0


class Prewritten(Struct, frozen=True, tag=True):
    """All keys are locked."""


class Locked(Struct, frozen=True, tag=True):
    """Other transactions' locks are in the way."""

    locks: tuple[Lock, ...]


class Conflict(Struct, frozen=True, tag=True):
    """A version was committed after the transaction had begun, or the transaction was rolled back here."""

    is_rolled_back: bool


class Commit(Struct, frozen=True, tag=True):
    """Make the transaction's locks on these keys versions of that timestamp."""

    start_ts: int
    commit_ts: int
    keys: tuple[Key, ...]


class CommittedAt(Struct, frozen=True, tag=True):
    """The keys are committed, at that timestamp."""

    commit_ts: int


class CommitTsExpired(Struct, frozen=True, tag=True):
    """The timestamp is too low: readers, or watermarks, have passed it."""

    min_commit_ts: int


class LockNotFound(Struct, frozen=True, tag=True):
    """The transaction has no lock there, and no version: it was rolled back, or has never been there."""


class Heartbeat(Struct, frozen=True, tag=True):
    """The large transaction lives: extend its primary lock's lifetime, and raise its bound."""

    primary: Key
    start_ts: int
    ttl_ms: int
    min_commit_ts: int


class Alive(Struct, frozen=True, tag=True):
    """The primary lock's lifetime and bound after a heartbeat, replicated."""

    ttl_ms: int
    min_commit_ts: int


class CheckStatus(Struct, frozen=True, tag=True):
    """What became of the transaction with that primary key?

    If its lifetime is over by `now_ts`, it is rolled back. If not, and it may not have locked its primary key yet,
    `may_roll_back` says whether to prevent that. Else its bound is raised above `reader_ts`; 0: leave it.
    """

    primary: Key
    start_ts: int
    reader_ts: int
    now_ts: int
    may_roll_back: bool


class Status(Struct, frozen=True, tag=True):
    """The state of a transaction, with `timestamp` its bound or its commit timestamp.

    `missing`: its primary key shows no trace of it yet.
    """

    state: Literal["ongoing", "committed", "rolled-back", "missing"]
    timestamp: int = 0


class Resolve(Struct, frozen=True, tag=True):
    """Settle the transaction's locks on these keys as its primary key says: commit them, or roll them back if 0."""

    start_ts: int
    commit_ts: int
    keys: tuple[Key, ...]


class Resolved(Struct, frozen=True, tag=True):
    """The locks are settled."""


class Get(Struct, frozen=True, tag=True):
    """Read these keys at a timestamp. Locks of `ignored` transactions are known to commit above it, if at all."""

    keys: tuple[Key, ...]
    read_ts: int
    ignored: tuple[int, ...] = ()


class StaleGet(Struct, frozen=True, tag=True):
    """Read these keys at a timestamp from any replica. `known`: large transactions of which the reader has learnt."""

    keys: tuple[Key, ...]
    read_ts: int
    known: tuple[tuple[int, Status], ...] = ()


class DataIsNotReady(Struct, frozen=True, tag=True):
    """The replica has not everything up to that timestamp yet, as far as it knows."""

    safe_ts: int


class Values(Struct, frozen=True, tag=True):
    """The values of the keys, in the order of the request."""

    elements: tuple[Elements, ...]


class ScanLocks(Struct, frozen=True, tag=True):
    """List the locks of transactions that began before that timestamp."""

    before_ts: int


class Locks(Struct, frozen=True, tag=True):
    """The locks found."""

    locks: tuple[Lock, ...]


class NotLeader(Struct, frozen=True, tag=True):
    """This replica does not lead the region; that store may."""

    leader: NodeId | None


class AskBackup(Struct, frozen=True, tag=True):
    """How far can the region be restored from what the receiver has uploaded? The first such question begins it."""


class AskResolved(Struct, frozen=True, tag=True):
    """How far has the region's watermark come at its leader?"""


class Reaches(Struct, frozen=True, tag=True):
    """Up to that timestamp; 0: nothing yet."""

    timestamp: int


class BackupGet(Struct, frozen=True, tag=True):
    """Read these keys from what the receiver has uploaded."""

    keys: tuple[Key, ...]
    read_ts: int


class CopyOf(Struct, frozen=True, tag=True):
    """Show these keys as a flashback to that timestamp finds them."""

    keys: tuple[Key, ...]
    read_ts: int


class Copied(Struct, frozen=True, tag=True):
    """The versions of that time, by key, and those locks of the keys whose transactions had begun by then."""

    elements: tuple[Elements, ...]
    locks: tuple[Lock, ...]


class Upload(Struct, frozen=True, tag=True):
    """In storage: a piece of a log backup, as (key, commit timestamp, value), and how far all pieces reach with it."""

    rows: tuple[tuple[Key, int, Elements], ...]
    checkpoint: int


# What changes rows, what the leader shows, and what any replica shows.
Changing = Prewrite | Commit | Heartbeat | CheckStatus | Resolve
Shown = Get | ScanLocks | AskResolved | CopyOf
Local = StaleGet | AskBackup | BackupGet
Request = Changing | Shown | Local
Reply = (
    Prewritten
    | Locked
    | Conflict
    | CommittedAt
    | CommitTsExpired
    | LockNotFound
    | Alive
    | Status
    | Resolved
    | Values
    | DataIsNotReady
    | Locks
    | Reaches
    | Copied
    | NotLeader
)


class ToRegion(Struct, frozen=True, tag=True):
    """A request to the leader of a region."""

    number: int
    region: int
    body: Request


class FromRegion(Struct, frozen=True, tag=True):
    """The answer to the request of that number."""

    number: int
    body: Reply
