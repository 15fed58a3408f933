"""Locks and versions, the commands that change them, and the requests of transactions with their answers."""

from typing import Literal

from msgspec import Struct

from clusters.ticdc.shape import Key
from harness.core.record import Json

Elements = tuple[Json, ...]  # The value of a row: a list. Empty: the row does not exist.
Kind = Literal["put", "lock"]  # A lock mutation changes nothing, but conflicts with writes.


class Lock(Struct, frozen=True, tag=True):
    """A lock on a key, with the value that its transaction would write there.

    The lock on the primary key decides for all: `ttl_ms` counts from `start_ts`, and the transaction commits at
    `min_commit_ts` or above. Of a large transaction `generation` counts the flushes. `is_flashback`: while it is held,
    its region serves nobody but who settles locks (store/replica.py, invariant 6).
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
    is_flashback: bool = False


class Write(Struct, frozen=True, tag=True):
    """A committed version of a key."""

    commit_ts: int
    start_ts: int
    kind: Kind
    elements: Elements


class PutLocks(Struct, frozen=True, tag=True):
    """In the log: set these locks. `is_rewrite`: they exist already, and only their lifetime or bound rises."""

    locks: tuple[Lock, ...]
    is_rewrite: bool = False


class CommitKeys(Struct, frozen=True, tag=True):
    """In the log: the transaction's locks on these keys become versions."""

    start_ts: int
    commit_ts: int
    keys: tuple[Key, ...]


class RollBackKeys(Struct, frozen=True, tag=True):
    """In the log: remove the transaction's locks on these keys.

    `is_recorded`: a record keeps it from locking them again; `is_flashback` says in it who rolled it back.
    """

    start_ts: int
    keys: tuple[Key, ...]
    is_recorded: bool = True
    is_flashback: bool = False


RowCommand = PutLocks | CommitKeys | RollBackKeys


class Mutation(Struct, frozen=True, tag=True):
    """A transaction's change of a key."""

    key: Key
    kind: Kind
    elements: Elements = ()


class Prewrite(Struct, frozen=True, tag=True):
    """A request to lock these keys, with their new values."""

    start_ts: int
    primary: Key
    mutations: tuple[Mutation, ...]
    ttl_ms: int
    min_commit_ts: int
    is_large: bool = False
    generation: int = 0


class PrepareFlashback(Struct, frozen=True, tag=True):
    """A request to lock these keys, with their values at `to_ts` and a mark: they get that `incarnation`.

    `number` is the element that stands for the flashback in histories.
    """

    start_ts: int
    primary: Key
    keys: tuple[Key, ...]
    to_ts: int
    incarnation: int
    number: Json
    ttl_ms: int


class Prepared(Struct, frozen=True, tag=True):
    """The answer: all keys are locked, and get these values."""

    elements: tuple[Elements, ...]


class CannotRestore(Struct, frozen=True, tag=True):
    """The answer if the keys are of another incarnation, or an earlier flashback lies above the timestamp."""


class Prewritten(Struct, frozen=True, tag=True):
    """The answer to a prewrite: all keys are locked."""


class Locked(Struct, frozen=True, tag=True):
    """The answer to a request that other transactions' locks prevent."""

    locks: tuple[Lock, ...]


class Conflict(Struct, frozen=True, tag=True):
    """The answer if a version was committed after the transaction began, or the transaction was rolled back here."""

    is_rolled_back: bool


class Commit(Struct, frozen=True, tag=True):
    """A request to make the transaction's locks on these keys versions of that timestamp."""

    start_ts: int
    commit_ts: int
    keys: tuple[Key, ...]


class CommittedAt(Struct, frozen=True, tag=True):
    """The answer to a commit: the keys are committed, at that timestamp."""

    commit_ts: int


class CommitTsExpired(Struct, frozen=True, tag=True):
    """The answer to a commit whose timestamp is too low: readers or watermarks have passed it."""

    min_commit_ts: int


class LockNotFound(Struct, frozen=True, tag=True):
    """The answer if the transaction has neither a lock nor a version there: it was rolled back, or has not come yet."""


class Heartbeat(Struct, frozen=True, tag=True):
    """A request of a large transaction to extend its primary lock's lifetime, and to raise its bound."""

    primary: Key
    start_ts: int
    ttl_ms: int
    min_commit_ts: int


class Alive(Struct, frozen=True, tag=True):
    """The answer to a heartbeat: the primary lock's lifetime and bound, which are replicated."""

    ttl_ms: int
    min_commit_ts: int


class CheckStatus(Struct, frozen=True, tag=True):
    """A request for the state of the transaction with that primary key.

    If it holds the lock and its lifetime is over by `now_ts`, it is rolled back. If it holds the lock and is alive, its
    bound is raised above `reader_ts`, unless that is 0. If it has left no trace on the key, `may_roll_back` says
    whether to roll it back, so that it cannot lock the key later.
    """

    primary: Key
    start_ts: int
    reader_ts: int
    now_ts: int
    may_roll_back: bool


class Status(Struct, frozen=True, tag=True):
    """The state of a transaction.

    `timestamp` is its bound if it is ongoing, and its commit timestamp if it is committed.

    `missing`: its primary key has neither a lock nor a version nor a record of it. `is_flashback`: a flashback has
    rolled it back.
    """

    state: Literal["ongoing", "committed", "rolled-back", "missing"]
    timestamp: int = 0
    is_flashback: bool = False


class Resolve(Struct, frozen=True, tag=True):
    """A request to commit the transaction's locks on these keys at `commit_ts`, or to roll them back if that is 0.

    `is_flashback`: for a flashback, which spares nobody who is alive.
    """

    start_ts: int
    commit_ts: int
    keys: tuple[Key, ...]
    is_flashback: bool = False


class Resolved(Struct, frozen=True, tag=True):
    """The answer to a `Resolve`: the transaction has no locks on these keys any more."""


class Get(Struct, frozen=True, tag=True):
    """A request for the values of these keys at a timestamp.

    Locks of `ignored` transactions are no obstacle: these are known to commit above the timestamp, if at all.
    """

    keys: tuple[Key, ...]
    read_ts: int
    ignored: tuple[int, ...] = ()


class StaleGet(Struct, frozen=True, tag=True):
    """A request to any replica for the values of these keys at a past timestamp.

    `known`: states of large transactions.
    """

    keys: tuple[Key, ...]
    read_ts: int
    known: tuple[tuple[int, Status], ...] = ()


class DataIsNotReady(Struct, frozen=True, tag=True):
    """The answer of a replica that may lack rows at or below that timestamp. It can serve up to `safe_ts`."""

    safe_ts: int


class Values(Struct, frozen=True, tag=True):
    """The values of the keys, in the order of the request."""

    elements: tuple[Elements, ...]


class ScanLocks(Struct, frozen=True, tag=True):
    """A request for the locks of transactions that began before that timestamp."""

    before_ts: int


class Locks(Struct, frozen=True, tag=True):
    """The answer to a `ScanLocks`."""

    locks: tuple[Lock, ...]


class AskBackup(Struct, frozen=True, tag=True):
    """A request for the timestamp up to which the region can be restored from the receiver's uploads.

    The first one turns the backup on.
    """


class AskResolved(Struct, frozen=True, tag=True):
    """A request to the leader for the region's watermark."""


class Reaches(Struct, frozen=True, tag=True):
    """The answer to `AskBackup` and `AskResolved`: a timestamp; 0 if there is none yet."""

    timestamp: int


class BackupGet(Struct, frozen=True, tag=True):
    """A request for the values of these keys at a timestamp in the receiver's uploads."""

    keys: tuple[Key, ...]
    read_ts: int


class Upload(Struct, frozen=True, tag=True):
    """In storage: a piece of a region's log backup, rows as (key, commit timestamp, value).

    Together with the earlier pieces of that version of the region it is complete up to `checkpoint`.
    """

    rows: tuple[tuple[Key, int, Elements], ...]
    checkpoint: int
    version: int


# Requests that change rows, those that only the leader answers, and those that any replica answers.
Changing = Prewrite | PrepareFlashback | Commit | Heartbeat | CheckStatus | Resolve
Shown = Get | ScanLocks | AskResolved
Local = StaleGet | AskBackup | BackupGet
RowReply = (
    Prewritten
    | Prepared
    | CannotRestore
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
)
