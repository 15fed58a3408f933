"""Messages between the replicas of a region's log, and their records on disk."""

from msgspec import Struct

from clusters.ticdc.rows.messages import Command
from harness.core.machine import NodeId


class Entry(Struct, frozen=True, tag=True):
    """A place of the log, from 1 up. Without a command: the first entry of a leader's term."""

    term: int
    command: Command | None = None


class Vote(Struct, frozen=True, tag=True):
    """On disk: the highest term seen, and the node that got this node's vote in it."""

    term: int = 0
    node: NodeId | None = None


class AppendEntries(Struct, frozen=True, tag=True):
    """From a leader: the entries after `index`, which is of term `index_term`; everything up to `commit` is decided."""

    region: int
    term: int
    index: int
    index_term: int
    entries: tuple[Entry, ...]
    commit: int
    sent_ns: int


class Appended(Struct, frozen=True, tag=True):
    """The follower's log equals the leader's up to `match`, durably; if not `is_ok`, it is no longer than that.

    `sent_ns` is that of the message which is answered.
    """

    region: int
    term: int
    is_ok: bool
    match: int
    sent_ns: int


class RequestVote(Struct, frozen=True, tag=True):
    """A candidate's request, with its last entry. `is_transfer`: the leader has given up for it."""

    region: int
    term: int
    last: int
    last_term: int
    is_transfer: bool = False


class Voted(Struct, frozen=True, tag=True):
    """The answer to a candidate."""

    region: int
    term: int
    is_granted: bool


class TimeoutNow(Struct, frozen=True, tag=True):
    """From a leader that gives up: stand for election at once."""

    region: int
    term: int


LogMessage = AppendEntries | Appended | RequestVote | Voted | TimeoutNow
LOG_MESSAGES = (AppendEntries, Appended, RequestVote, Voted, TimeoutNow)
