"""Binlogs, their indexes, and the end of a replica: guarantees G17, G18 and G20.

Injectors show their `binlog`, a list of [kind, epoch, server, rows], and its `binlog-index`, a list of [epoch,
position, next position, count]; the replica shows [whether both binlogs lack what it needs, position by server,
schema changes].
1. `split-epoch`: an epoch has one transaction in a binlog. `binlog-order`: its epochs rise, and its server is one and
   the same. A witness is a transaction.
2. `binlog-gap`: between two neighbouring transactions without an incident no epoch lacks of which another binlog has a
   transaction, or in which an acknowledged operation committed. A witness is such a pair.
3. `false-index`: a row of the index names the place of the epoch's transaction, and the end of it, and its rows. Only
   the last epochs before a start of the injector may lack in the index. A witness is a row.
4. `behind`: at rest the replica has the lists of the stream, unless both binlogs lack what it needs.
   `lost-schema-change`: under the same condition it has every acknowledged schema change. Witnesses are
   lists and schema changes of a replica that had not to stop.
5. `needless-stop`: a replica stops only if each binlog has an incident that reaches beyond its position. A witness is
   a replica that stopped.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary, epoch_name
from checkers.history.tables import rows, states
from checkers.history.troubles import Trouble, judgement
from checkers.replication.sources import STREAM, replication, shown
from harness.core.columns import APPEND, OK
from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "binlogs"
SPLIT, ORDER, GAP, INDEX = "split-epoch", "binlog-order", "binlog-gap", "false-index"
BEHIND, SCHEMA_LOST, NEEDLESS = "behind", "lost-schema-change", "needless-stop"
ANOMALIES: Final = {
    SPLIT: "A binlog has several transactions for one epoch.",
    ORDER: "The epochs of a binlog do not rise, or its server changes.",
    GAP: "A binlog lacks an epoch, and has no incident there.",
    INDEX: "The index of a binlog names a place that does not have the epoch's transaction.",
    BEHIND: "At rest a replica lacks changes of its source, and does not stop for a gap.",
    SCHEMA_LOST: "At rest a replica lacks a change of the schema, and does not stop for a gap.",
    NEEDLESS: "A replica stopped for a gap, and a binlog has none after its position.",
}
SCHEMA: Final = "schema"
EPOCH, INCIDENT = "epoch", "incident"


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A record of a binlog; the epoch of an incident is the last one that may lack."""

    kind: str
    epoch: int
    server: int
    rows: tuple[tuple[Json, Json], ...]


class Indexed(msgspec.Struct, frozen=True, array_like=True):
    """A row of an index."""

    epoch: int
    position: int
    next_position: int
    count: int


class End(msgspec.Struct, frozen=True, array_like=True):
    """The end of a replica."""

    is_at_end: bool
    status: tuple[tuple[int, int], ...]
    schema: tuple[Json, ...]


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all binlogs and replicas. Raises HistoryError if a record has another form."""
    names = Dictionary(history)
    found = states(history, names, "binlog", "binlog-index", "replica")
    try:
        binlogs = {str(each.key): msgspec.convert(each.value, tuple[Entry, ...]) for each in found["binlog"]}
        indexes = {str(each.key): msgspec.convert(each.value, tuple[Indexed, ...]) for each in found["binlog-index"]}
        ends = {str(each.key): msgspec.convert(each.value, End) for each in found["replica"]}
    except msgspec.ValidationError as error:
        raise HistoryError(f"{history}: a binlog or a replica has another form ({error})") from None
    troubles: list[Trouble] = []
    witnesses = dict.fromkeys(ANOMALIES, 0)
    committed, changes = _told(history, names) if binlogs else ({}, ())
    known = committed | {each.epoch: "" for log in binlogs.values() for each in log if each.kind == EPOCH}
    for node, log in binlogs.items():
        transactions = [each for each in log if each.kind == EPOCH]
        for name in (SPLIT, ORDER):
            witnesses[name] += len(transactions)
        troubles += order(node, transactions)
        pairs = runs(log)
        witnesses[GAP] += len(pairs)
        troubles += gaps(node, pairs, known)
        index = indexes.get(node, ())
        witnesses[INDEX] += len(index)
        troubles += misplaced(node, log, index)
    lists = replication(history) if ends else None
    for node, end in ends.items():
        if end.is_at_end:
            witnesses[NEEDLESS] += 1
            troubles += needless(node, end, binlogs)
        if lists is None or end.is_at_end or STREAM not in lists.logs:
            continue
        due = {key: [each for each, _ in held] for key, held in lists.logs[STREAM].keys.items() if key != SCHEMA}
        held = {
            key: each for seen in lists.seen if seen.op is None and seen.replica == node for key, each in seen.lists
        }
        witnesses[BEHIND] += len(due)
        witnesses[SCHEMA_LOST] += len(changes)
        troubles += behind(node, due, held)
        lost = [change for change in changes if change not in end.schema]
        if lost:
            sentence = f"At rest {node} lacks the change {lost[0]} of the schema, which was committed."
            troubles.append(Trouble(SCHEMA_LOST, sentence, (node, str(lost[0]))))
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def order(node: str, transactions: Sequence[Entry]) -> Iterator[Trouble]:
    """1."""
    for before, each in pairwise(transactions):
        if each.epoch == before.epoch:
            sentence = f"The binlog of {node} has two transactions for {epoch_name(each.epoch)}."
            yield Trouble(SPLIT, sentence, (node, each.epoch))
        elif each.epoch < before.epoch or each.server != before.server:
            sentence = (
                f"The binlog of {node} has {epoch_name(each.epoch)} of server {each.server} after "
                f"{epoch_name(before.epoch)} of server {before.server}."
            )
            yield Trouble(ORDER, sentence, (node, each.epoch))


def runs(log: Sequence[Entry]) -> list[tuple[int, int]]:
    """The epochs of neighbouring transactions without an incident between them."""
    pairs = []
    before: int | None = None
    for each in log:
        if each.kind == INCIDENT:
            before = None
        elif each.kind == EPOCH:
            if before is not None:
                pairs.append((before, each.epoch))
            before = each.epoch
    return pairs


def gaps(node: str, pairs: Sequence[tuple[int, int]], known: Mapping[int, str]) -> Iterator[Trouble]:
    """2. `known` has the epochs with changes, each with its evidence."""
    ascending = sorted(known)
    for low, high in pairs:
        place = bisect_right(ascending, low)
        if place < len(ascending) and ascending[place] < high:
            epoch = ascending[place]
            evidence = known[epoch] or "another binlog has it"
            sentence = (
                f"The binlog of {node} goes from {epoch_name(low)} to {epoch_name(high)} without an incident and "
                f"without {epoch_name(epoch)}: {evidence}."
            )
            yield Trouble(GAP, sentence, (node, epoch))


def misplaced(node: str, log: Sequence[Entry], index: Sequence[Indexed]) -> Iterator[Trouble]:
    """3."""
    for row in index:
        there = log[row.position] if row.position < len(log) else None
        is_there = there is not None and there.kind == EPOCH and there.epoch == row.epoch
        if not is_there or row.next_position != row.position + 1 or row.count != len(there.rows if there else ()):
            what = "the end" if there is None else f"a record '{there.kind}' of {epoch_name(there.epoch)}"
            sentence = (
                f"The index of {node} has {epoch_name(row.epoch)} with {row.count} rows at {row.position} to "
                f"{row.next_position}, where the binlog has {what}."
            )
            yield Trouble(INDEX, sentence, (node, row.epoch))
    indexed = {row.epoch for row in index}
    lacking: int | None = None
    for each in log:
        if each.kind == INCIDENT:
            lacking = None
        elif each.kind == EPOCH and each.epoch not in indexed:
            lacking = lacking if lacking is not None else each.epoch
        elif each.kind == EPOCH and lacking is not None:
            sentence = f"The index of {node} lacks {epoch_name(lacking)}, and has {epoch_name(each.epoch)} after it."
            yield Trouble(INDEX, sentence, (node, lacking))
            lacking = None


def behind(node: str, due: Mapping[Json, Sequence[Json]], held: Mapping[Json, Sequence[Json]]) -> Iterator[Trouble]:
    """4: the first list that lacks something."""
    for key, elements in due.items():
        there = held.get(key, ())
        if len(there) < len(elements):
            sentence = f"At rest {node} has {shown(there)} under {key}, and the stream {shown(elements)}."
            yield Trouble(BEHIND, sentence, (node, str(key)))
            return


def needless(node: str, end: End, binlogs: Mapping[str, Sequence[Entry]]) -> Iterator[Trouble]:
    """5."""
    latest = max((epoch for _, epoch in end.status), default=0)
    for source, log in binlogs.items():
        if not any(each.kind == INCIDENT and each.epoch > latest for each in log):
            sentence = f"{node} stopped at {epoch_name(latest)}, and the binlog of {source} has no gap after it."
            yield Trouble(NEEDLESS, sentence, (node, source))


def _told(history: Path, names: Dictionary) -> tuple[dict[int, str], tuple[Json, ...]]:
    """The epochs in which acknowledged operations changed rows, and the acknowledged schema changes."""
    committed = {
        row["index"]: row["epoch"] for row in rows(history, "ops", ["index", "epoch", "outcome"], outcome=[OK])
    }
    epochs: dict[int, str] = {}
    changes: list[Json] = []
    for mop in rows(history, "mops", ["op", "f", "key", "value"], f=[APPEND]):
        epoch = committed.get(mop["op"])
        if epoch is None:
            continue
        if names.value(mop["key"]) == SCHEMA:
            changes.append(names.value(mop["value"]))
        else:
            epochs[epoch] = f"T{mop['op']} committed in it"
    return epochs, tuple(changes)


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
