"""Supersession: if a stream may skip versions of a key, a newer version replaces those that never came."""

import numpy as np
from msgspec import Struct

from checkers.columns.index import GroupIndex, expand, is_kind, joint_codes
from checkers.history.units import epoch_of
from checkers.streams.view import StreamView
from harness.core.columns import BACKFILL, NEVER, ROW, Bools, Int64s


class Versions(Struct, frozen=True, kw_only=True):
    """Versions of keys, as arrays (m,)."""

    key: Int64s
    position: Int64s
    ordinal: Int64s
    epoch: Int64s
    op: Int64s  # -1: unknown.
    version: Int64s

    @classmethod
    def of_events(cls, view: StreamView, rows: Int64s) -> "Versions":
        """The versions that events show."""
        d, match = view.deliveries, view.match[rows]
        write = np.append(view.expected, -1)[match]
        return cls(
            key=d.key[rows],
            position=d.position[rows],
            ordinal=d.ordinal[rows],
            epoch=epoch_of(d, view.contract)[rows],
            op=np.append(view.writes.op, -1)[write],
            version=np.append(view.writes.version, NEVER)[write],
        )

    @classmethod
    def of_expected(cls, view: StreamView, places: Int64s) -> "Versions":
        """The versions of expected writes."""
        w, write = view.writes, view.expected[places]
        return cls(
            key=w.key[write],
            position=w.position[write],
            ordinal=w.ordinal[write],
            epoch=epoch_of(w, view.contract)[write],
            op=w.op[write],
            version=w.version[write],
        )


def superseded(
    view: StreamView, versions: Versions, *, group: Int64s, watermark: Int64s, height: Int64s, before: Int64s
) -> Bools:
    """True for each of m versions that a newer, delivered version of its key replaces, as the contract permits.

    The newer version must have arrived before the row `before` (m,), in the group (n,) to which the row `watermark`
    (m,) belongs, and a watermark of that `height` (m,) must close it. Query only the few versions that would otherwise
    be violations: the cost is that of the newer versions of each, up to its watermark.
    """
    result = np.zeros(len(watermark), np.bool_)
    if view.contract.versions == "every" or len(watermark) == 0:
        return result
    rows = np.flatnonzero(is_kind(view.deliveries.kind, (ROW, BACKFILL)) & ~view.is_phantom)
    shown = Versions.of_events(view, rows)
    lines, lines_wanted = [group[rows], shown.key], [group[watermark], versions.key]
    if view.contract.versions == "latest-per-epoch":
        lines.append(shown.epoch)
        lines_wanted.append(versions.epoch)
    line, wanted = joint_codes(lines, lines_wanted)
    index = GroupIndex(line, shown.position)
    end = index.place(wanted, height, above=view.contract.closed == "<=")
    of, place = expand(index.place(wanted, versions.position), end)
    newer = index.rows[place]
    is_newer = shown.position[newer] > versions.position[of]
    is_newer |= _is_newer_beside(view, shown, newer, versions, of)
    result[of[is_newer & (rows[newer] < before[of])]] = True
    return result


def _is_newer_beside(view: StreamView, shown: Versions, newer: Int64s, versions: Versions, of: Int64s) -> Bools:
    """True for versions that may replace those at or below their position: the later write of one operation.

    Where positions are not unique, two operations may have one; the source's own order decides between them, and if it
    is unknown, either may be the newer one.
    """
    is_later: Bools = (shown.ordinal[newer] > versions.ordinal[of]) & (shown.ordinal[newer] != NEVER)
    if view.contract.is_position_unique:
        return is_later
    rank, other = shown.version[newer], versions.version[of]
    is_ranked = (rank != NEVER) & (other != NEVER)
    is_apart = (shown.op[newer] != versions.op[of]) & (shown.position[newer] == versions.position[of])
    return np.where(is_apart, np.where(is_ranked, rank > other, True), is_later)
