"""The merged events of an epoch: one for each row that has changed, with the net change.

A subscriber's user has two event operations on the same table. One delivers each change, the other merges those of an
epoch. Inside an epoch all changes of a row are in the order of their commits, so the first has the image before the
epoch, and the last the one after it. A row that was inserted and deleted in one epoch has no event.
"""

from collections.abc import Iterable

from clusters.ndb import planted
from clusters.ndb.shape import image, is_imaged
from clusters.ndb.stream.messages import Row
from harness.core.machine import Dump
from harness.core.record import Json


def merged(session: int, rows: Iterable[Row], bugs: frozenset[str]) -> list[Dump]:
    """The net changes of an epoch: `merged` states, by key, each [session, image before, image after]."""
    changes: dict[Json, tuple[Json, Json]] = {}
    epoch = 0
    for row in rows:
        if is_imaged(row.key):
            epoch = row.epoch
            before, _ = changes.get(row.key, (row.old_value, None))
            if row.old_value is None and planted.MERGE_LOSES_DELETE_INSERT in bugs:
                before = None
            changes[row.key] = before, image(row.value)
    return [
        Dump(object="merged", key=key, value=[session, before, after], position=epoch)
        for key, (before, after) in changes.items()
        if (before, after) != (None, None)
    ]
