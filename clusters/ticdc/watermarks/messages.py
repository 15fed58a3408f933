"""Messages between stores about leaders and large transactions."""

from msgspec import Struct

from clusters.ticdc.rows.messages import Status
from clusters.ticdc.shape import Key


class ReadState(Struct, frozen=True, tag=True):
    """From a leader: a replica that has applied the region's log up to `applied` can be read at `safe_ts` and below.

    `hints`: the known states of large transactions that had locks there at that time.
    """

    region: int
    applied: int
    safe_ts: int
    hints: tuple[tuple[int, Status], ...]


class CheckLeader(Struct, frozen=True, tag=True):
    """A request: the receiver says in which of these regions it still follows the sender, in that term.

    `states` are for readers at the receiver.
    """

    round: int
    regions: tuple[tuple[int, int], ...]
    states: tuple[ReadState, ...] = ()


class LeaderChecked(Struct, frozen=True, tag=True):
    """The answer: the regions in which it follows."""

    round: int
    regions: tuple[int, ...]


class AskLarge(Struct, frozen=True, tag=True):
    """A request for the states of these large transactions, as (start_ts, primary), for all regions of the sender."""

    round: int
    transactions: tuple[tuple[int, Key], ...]


class LargeStatus(Struct, frozen=True, tag=True):
    """The answer: their replicated states, without those whose primary key the sender does not lead."""

    round: int
    states: tuple[tuple[int, Status], ...]


ROUND_MESSAGES = (CheckLeader, LeaderChecked, AskLarge, LargeStatus)
