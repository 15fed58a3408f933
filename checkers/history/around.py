"""Facts beside a stream and its source's writes: operations that wrote nothing, and when the run came to rest."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns.arrow import integers
from checkers.columns.images import IMAGES, Images
from checkers.columns.table import concat, empty
from checkers.history.streams import SourceGroup
from checkers.history.tables import phases, rows, windows
from harness.core.columns import INFO, NEVER, Int64s
from harness.core.promises import Excuse, Excuses, StreamContract

NOT_AT_REST: Final = -1


class Issued(Struct, frozen=True, kw_only=True):
    """Operations and their positions, arrays (n,). NEVER stands for no position, and for an unclear completion."""

    invoke_seq: Int64s
    complete_seq: Int64s
    position: Int64s


class Crashes(Struct, frozen=True, kw_only=True):
    """Crashes of subscribers that had an effect and spared their disks, arrays (n,): places in a log's subscribers."""

    subscriber: Int64s
    seq: Int64s


class Around(Struct, frozen=True, kw_only=True):
    """The surroundings of a stream, as positions in the journal, like `seq` of the events.

    `settled_seq`: everything that was answered before this position had time to arrive, because the run came to rest at
    its end; NOT_AT_REST if that is not known. `healed_seq`: no fault was in force from here on.
    """

    readers: Issued  # Operations that wrote nothing.
    crashes: Crashes
    settled_seq: int = NOT_AT_REST
    healed_seq: int = NOT_AT_REST
    images: Images | None = None  # The before-images of a foreign stream.


NOTHING_AROUND: Final = Around(readers=empty(Issued), crashes=empty(Crashes))


def read_around(
    history: Path, readers: Issued, contract: StreamContract, excuses: Excuses, subscribers: Sequence[str]
) -> Around:
    """The facts that the rules under that contract need; `readers` are the operations without a write.

    Raises HistoryError if a file is damaged.
    """
    if not issues_by_writes(contract):
        readers = NOTHING_AROUND.readers
    marks = phases(history)
    is_completed = "end" in marks and marks["end"]["note"] == "completed"
    ends = [row["seq"] for row in rows(history, "faults", ["seq"], phase=["end"])]
    return Around(
        readers=readers,
        crashes=_crashes(history, excuses, subscribers),
        settled_seq=marks["final"]["seq"] if is_completed and "final" in marks else NOT_AT_REST,
        healed_seq=max(ends, default=NOT_AT_REST),
        images=Images(history) if (history / IMAGES).is_file() else None,
    )


def _crashes(history: Path, excuses: Excuses, subscribers: Sequence[str]) -> Crashes:
    found = [
        (place, window.begin_seq)
        for window in windows(history, excuses)
        if Excuse.MEMORY in window.excuse and Excuse.WRITES not in window.excuse and window.effect
        for place, name in enumerate(subscribers)
        if name in window.targets
    ]
    subscriber, seq = np.array(found, np.int64).reshape(-1, 2).T
    return Crashes(subscriber=subscriber, seq=seq)


def readers_of(group: SourceGroup) -> Issued:
    """The operations of that row group that wrote nothing."""
    is_reader = np.ones(group.ops.num_rows, np.bool_)
    is_reader[group.writer] = False

    def of_readers(name: str, missing: int) -> Int64s:
        return integers(group.ops[name], missing)[is_reader]

    is_unclear = of_readers("outcome", INFO) == INFO
    return Issued(
        invoke_seq=of_readers("invoke_seq", 0),
        complete_seq=np.where(is_unclear, NEVER, of_readers("complete_seq", NEVER)),
        position=of_readers("commit_ts", NEVER),
    )


def all_readers(parts: Sequence[Issued]) -> Issued:
    """The readers of all row groups; none of them if no such operation has a position."""
    if not any(np.any(part.position != NEVER) for part in parts):
        return NOTHING_AROUND.readers
    return concat(parts)


def issues_by_writes(contract: StreamContract) -> bool:
    """True if only operations make positions and watermarks advance: no clock, and no event of the system."""
    is_by_writes = contract.wm_idle == "rests" and not contract.follows_clock and not contract.system_events
    return is_by_writes and contract.is_position_global
