"""Messages between the replicas of a log whose entries are commands of type C, and their records on disk."""

from typing import Generic, TypeVar

from msgspec import Struct

from harness.core.machine import NodeId

C = TypeVar("C")


class Entry(Struct, Generic[C], frozen=True, tag=True):
    """An entry of the log. Its places count from 1. The first entry of a leader's term has no command."""

    term: int
    command: C | None = None


class Vote(Struct, frozen=True, tag=True):
    """On disk: the highest term seen, and the node that got this node's vote in it."""

    term: int = 0
    node: NodeId | None = None


class AppendEntries(Struct, Generic[C], frozen=True, tag=True):
    """From a leader: the entries after `index`, whose entry has term `index_term`.

    All entries up to `commit` are decided.
    """

    log: int
    term: int
    index: int
    index_term: int
    entries: tuple[Entry[C], ...]
    commit: int
    sent_ns: int


class Appended(Struct, frozen=True, tag=True):
    """From a follower: its log on disk equals the leader's up to `match`; if not `is_ok`, it ends there or before.

    `sent_ns` is that of the message which it answers.
    """

    log: int
    term: int
    is_ok: bool
    match: int
    sent_ns: int


class RequestVote(Struct, frozen=True, tag=True):
    """From a candidate: a request for a vote, with its last entry.

    `is_transfer`: the leader has given up in its favour.
    """

    log: int
    term: int
    last: int
    last_term: int
    is_transfer: bool = False


class Voted(Struct, frozen=True, tag=True):
    """The answer to a candidate: whether it gets the vote."""

    log: int
    term: int
    is_granted: bool


class TimeoutNow(Struct, frozen=True, tag=True):
    """From a leader that gives up, to its successor: stand for election at once."""

    log: int
    term: int


LogMessage = AppendEntries[C] | Appended | RequestVote | Voted | TimeoutNow
LOG_MESSAGES = (AppendEntries, Appended, RequestVote, Voted, TimeoutNow)
