"""A slow, obvious twin of S29: the row that a row replaced is the one of its key before it."""

from harness.core.columns import BACKFILL, CLOSE, END, ERROR, GAP, NEVER, OPEN, ROW
from tests.oracles.stream_events import firsts
from tests.oracles.streams import Oracle


def before_mismatches(oracle: Oracle, images: dict[int, int]) -> tuple[dict[int, int], int]:
    """Each event whose image is not the value of the event before it, with that event; and the number compared."""
    if oracle.contract.versions != "every" or oracle.contract.delivery == "at-most-once":
        return {}, 0
    compared = {t: u for t in images if (u := _before(oracle, t)) is not None}
    return {t: u for t, u in compared.items() if images[t] != oracle.log[u].value}, len(compared)


def _before(oracle: Oracle, t: int) -> int | None:
    """The event that shows what was there before the event at t; None if there is no such, or it is not known."""
    log = oracle.log
    line = sorted((log[u].position, u) for u in _shown(oracle) if _line(oracle, u) == _line(oracle, t))
    if log[t].kind != ROW or (log[t].position, t) not in line[1:]:
        return None
    _, u = line[line.index((log[t].position, t)) - 1]
    if not (_is_sure(oracle, line, t) and _is_sure(oracle, line, u)):
        return None
    if log[u].kind == ROW:
        return u
    streamed = [x for x in _shown(oracle) if log[x].kind == ROW and _part(oracle, x) == _part(oracle, u)]
    is_whole = u < min(streamed) and log[u].position < log[t].position
    place = line.index((log[t].position, t))
    is_under_way = any(log[x].kind == ROW for _, x in line[: place - 1])
    is_reached = any(log[x].value == log[u].value for _, x in line[place:])
    return u if is_whole and not (is_under_way or is_reached) else None


def _shown(oracle: Oracle) -> list[int]:
    """First deliveries of their session, and all rows of snapshots."""
    snapshots = [t for t, event in enumerate(oracle.log) if event.kind == BACKFILL]
    found = sorted({*firsts(oracle), *snapshots})
    return [t for t in found if oracle.log[t].position != NEVER]


def _part(oracle: Oracle, t: int) -> tuple[tuple[int, ...], int]:
    """The session of an event, and how many of its markers came before."""
    session = oracle.session(oracle.log[t])
    ends = (OPEN, GAP, CLOSE, ERROR, END)
    return session, sum(each.kind in ends and oracle.session(each) == session for each in oracle.log[:t])


def _line(oracle: Oracle, t: int) -> tuple[object, ...]:
    return _part(oracle, t), oracle.log[t].key, oracle.home(oracle.log[t])


def _is_sure(oracle: Oracle, line: list[tuple[int, int]], t: int) -> bool:
    """Is that event alone at its position, or did none of those there come again?"""
    identities = [oracle.identity(oracle.log[u]) for u in oracle.events()]
    tie = [u for position, u in line if position == oracle.log[t].position]
    repeated = any(identities.count(oracle.identity(oracle.log[u])) > 1 for u in tie if u in oracle.events())
    return len(tie) == 1 or not repeated
