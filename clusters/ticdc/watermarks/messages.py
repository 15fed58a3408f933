"""Messages between stores about leaders and large transactions."""

from msgspec import Struct

from clusters.ticdc.rows.messages import Status
from clusters.ticdc.shape import Key


class ReadState(Struct, frozen=True, tag=True):
    """Who has applied the region's log up to `applied` can read it at `safe_ts` and below.

    `hints`: large transactions with locks there at that time, and what is known of them.
    """

    region: int
    applied: int
    safe_ts: int
    hints: tuple[tuple[int, Status], ...]


class CheckLeader(Struct, frozen=True, tag=True):
    """Does the receiver still follow the sender in these regions, each in that term? `states` are for its readers."""

    round: int
    regions: tuple[tuple[int, int], ...]
    states: tuple[ReadState, ...] = ()


class LeaderChecked(Struct, frozen=True, tag=True):
    """It follows in these regions."""

    round: int
    regions: tuple[int, ...]


class AskLarge(Struct, frozen=True, tag=True):
    """What became of these large transactions? One request for all regions of the sender: (start_ts, primary)."""

    round: int
    transactions: tuple[tuple[int, Key], ...]


class LargeStatus(Struct, frozen=True, tag=True):
    """Their states, replicated; those whose primary key the sender does not lead are left out."""

    round: int
    states: tuple[tuple[int, Status], ...]


ROUND_MESSAGES = (CheckLeader, LeaderChecked, AskLarge, LargeStatus)
