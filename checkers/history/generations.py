"""Generations: the operations between two restarts of the whole cluster, judged as a history of their own.

Such a restart restores only what had been saved: acknowledged transactions that were not saved are *void*, a legal
loss. So reads after it contradict reads before it, and each generation is judged by itself:
1. An ok operation belongs to the generation of its epoch, within what is possible: it was not answered before the
   restart that began its generation, and not invoked after the one that ended it.
2. A generation includes the writers of earlier ones that were still present when it began: none is void. Their order
   and what they read is evidence, too, because whatever a writer had read was saved with it.
3. Operations of earlier generations that wrote nothing are not included: their epoch is the one that was current on
   the node that answered them, and does not bound what they saw, which may be void.
4. Failed operations, and those of unclear outcome, are in every generation: they may have happened at any time.
   An ok operation without an epoch that may be on either side of a restart is taken as unclear.
5. But an unclear operation of which a stream delivered anything did happen, in the epoch of that event: if it is void,
   it is not included. Otherwise these steps make a consistent cut look inconsistent: (a) T1 appends 1 to x and commits,
   its client gives up, a subscriber receives 1, and then a watermark; (b) the cluster restarts from before T1; (c) T2
   appends 2 to x, and reads show x as [2]. That no read shows 1 does not make it newer than 2: it is gone.
Source of the rules: guarantees G21 and G22 of MySQL Cluster's epochs, whose restarts these are.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from checkers.columns.arrow import integers
from checkers.columns.facts import Facts
from checkers.history.streams import NOTHING_DERIVED, Placement, placement_by, stream_logs
from checkers.history.streams import merged as merged_placements
from checkers.history.tables import rows
from harness.core.columns import INFO, NEVER, OK, Bools, Int64s
from harness.core.errors import HistoryError
from harness.core.promises import StreamContract, View
from harness.core.verdict import Finding, Judgement


class Restart(Struct, frozen=True, kw_only=True):
    """A restart of the whole cluster, as a node reported it. Number 0 is the initial start.

    From journal position `seq` on, the first node may have served again. Transactions that had committed before are
    void if their epoch, without the low bits that are saved together, is above `restored`.
    """

    number: int
    seq: int
    restored: int
    first_epoch: int


class Spans(Struct, frozen=True, kw_only=True):
    """The generations that include each operation, from `first` to `last`, and the operations that count as unclear.

    Columns: shape (n,). An operation is unclear in all generations, or in none.
    """

    first: Int64s
    last: Int64s
    unclear: Bools


def restarts(history: Path) -> tuple[Restart, ...]:
    """The restarts of the whole cluster in order, without the initial start. Raises HistoryError."""
    found = rows(history, "states", ["seq", "node", "object", "key", "value"], object=["restart", "view"])
    try:
        return tuple(_restarts(found))
    except (KeyError, msgspec.DecodeError) as problem:
        path = history / "states.parquet"
        raise HistoryError(f"{path}: a restart that cannot be read ({problem}); mend what recorded it") from problem


def placement_of_streams(history: Path, contract: StreamContract | None, views: Collection[View] = ()) -> Placement:
    """The positions that streams report for unclear operations; none without a contract. Raises HistoryError."""
    logs = stream_logs(history, contract, views) if contract is not None else ()
    shared = Facts()
    return merged_placements(placement_by(log, history, shared=shared) for log in logs) if logs else NOTHING_DERIVED


def _restarts(reported: Sequence[Mapping[str, Any]]) -> Iterator[Restart]:
    """The restarts that rows of states report, in order. Every node may report one; the first report counts.

    A generation begins when the first node installs the view that was the latest of the reporting node: a node that
    installs it earlier may serve before the restart is reported.
    """
    known: set[int] = set()
    installed: dict[int, int] = {}  # The seq at which each view was first installed,
    latest: dict[str, int] = {}  # and the view that each node installed last.
    for row in reported:
        if row["object"] == "view":
            installed.setdefault(row["key"], row["seq"])
            latest[row["node"]] = row["key"]
        elif row["key"] > 0 and row["key"] not in known:
            known.add(row["key"])
            restored, first_epoch = msgspec.json.decode(row["value"], type=tuple[int, int])
            began = installed[latest[row["node"]]] if row["node"] in latest else row["seq"]
            yield Restart(number=row["key"], seq=began, restored=restored, first_epoch=first_epoch)


def spans(ops: pa.Table, known: Sequence[Restart], *, saved_bits: int, reported: Placement = NOTHING_DERIVED) -> Spans:
    """The generations, from 0 to len(known), that include each operation (row of ops.parquet). O(n).

    `reported` holds the positions that the streams report for operations of unclear outcome.
    """
    outcome = integers(ops["outcome"], INFO)
    is_info, is_ok = outcome == INFO, outcome == OK
    epoch = np.where(is_info, reported.positions(integers(ops["index"])), integers(ops["epoch"], NEVER))
    is_writer = integers(ops["commit_ts"], NEVER) != NEVER
    # When a client gave up says nothing about when its operation happened.
    home, is_certain = _homes(ops, known, epoch, np.where(is_info, NEVER, integers(ops["complete_seq"], NEVER)))
    until = kept_until(known, home, epoch >> saved_bits)
    is_placed = is_ok & is_certain
    is_void_once = is_placed & is_writer | is_info & (epoch != NEVER)
    last = np.where(is_void_once, until, np.where(is_placed, home, len(known)))
    return Spans(first=np.where(is_placed, home, 0), last=last, unclear=is_ok & ~is_certain | is_info)


def kept_until(known: Sequence[Restart], home: Int64s, saved: Int64s) -> Int64s:
    """The last generation that includes each operation: the one before the first restart that did not restore it.

    Restarts before the generation `home` do not count. `saved` is the operation's epoch, comparable with `restored`.
    """
    restored = [restart.restored for restart in known]
    lower = np.full(len(restored), len(restored), np.int64)  # The next restart that restored less than this one.
    waiting: list[int] = []
    for number, position in enumerate(restored):
        while waiting and restored[waiting[-1]] > position:
            lower[waiting.pop()] = number
        waiting.append(number)
    result, reach = home.copy(), np.append(np.array(restored, np.int64), -1)
    while True:
        kept = np.flatnonzero((result < len(known)) & (reach[result] >= saved))
        if not len(kept):
            return result
        result[kept] = lower[result[kept]]


def _homes(ops: pa.Table, known: Sequence[Restart], epoch: Int64s, complete_seq: Int64s) -> tuple[Int64s, Bools]:
    """The generation of each operation, and True where it is certain."""
    begun = np.array([restart.seq for restart in known], np.int64)
    earliest = np.searchsorted(begun, integers(ops["invoke_seq"], 0))
    latest = np.searchsorted(begun, complete_seq)
    # An epoch that two generations use belongs to the later one, unless that one had not begun.
    reach = np.minimum.accumulate(np.array([restart.first_epoch for restart in known], np.int64)[::-1])[::-1]
    by_epoch = np.searchsorted(reach, epoch, side="right")
    has_epoch = epoch != NEVER
    home = np.where(has_epoch, np.clip(by_epoch, earliest, latest), earliest).astype(np.int64)
    return home, has_epoch | (earliest == latest)


def merged(judgements: Sequence[Judgement], generations: int | None = None) -> Judgement:
    """One judgement from those of all generations, first to last; each finding occurs once.

    Facts are those of the last one.

    `generations`: their number, if one judgement may stand for several. Facts about a writer in one generation are
    checked again in later ones, so the writer counts there as a witness, too.
    """
    count = generations or len(judgements)
    if count == 1:
        return judgements[0]
    findings: dict[str, Finding] = {}
    witnesses: Counter[str] = Counter()
    unknown: dict[str, str] = {}
    for judgement in judgements:
        for finding in judgement.findings:
            findings.setdefault(finding.fingerprint, finding)
        witnesses.update(judgement.witnesses)
        unknown = {**judgement.unknown, **unknown}
    found = {finding.anomaly for finding in findings.values()}
    last = judgements[-1]
    return Judgement(
        checker=last.checker,
        findings=tuple(findings.values()),
        witnesses=dict(witnesses),
        unknown={name: reason for name, reason in unknown.items() if name not in found},
        facts={**last.facts, "generations": count},
    )
