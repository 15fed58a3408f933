"""Anomalies that need no cycle: contradictions between reads and appends of one key, in all transactions.

The rules are those of Elle's list-append checker (jepsen-io/elle at ccdee6f). Only what ok transactions read counts.
Witnesses, by the anomaly's name: the reads or appends that could have shown it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from checkers.columns.runs import distinct, expand, first_of_each
from checkers.graph.edges import Inference
from checkers.graph.sightings import NONE, Report, Sighting, seen
from checkers.history.stretches import ONCE, Weights
from checkers.transactions.key_rows import KeyRows
from checkers.transactions.list_versions import FAR, Versions, inference, resolved
from harness.core.columns import FAIL, INFO, OK, Bools, Int64s


def infer(parts: Sequence[KeyRows], weights: Weights = ONCE) -> Inference:
    """The edges and anomalies that follow from the rows of all chunks about the keys of one partition."""
    versions, duplicate = resolved(parts)
    return inference(versions, duplicate, anomalies(versions, weights), weights)


def anomalies(versions: Versions, weights: Weights) -> Report:
    """All anomalies of single keys, and for each the number of witnesses."""
    odd = _OddReads(versions)
    sightings = (
        *_incompatible_order(versions),
        *_disordered(versions),
        *_duplicate_elements(versions, odd),
        *_future_reads(versions),
        *_aborted_reads(versions, odd),
        *_garbage_reads(versions, odd),
        *_intermediate_reads(versions),
        *_dirty_updates(versions),
        *_lost_updates(versions, odd),
    )
    return Report(sightings, _tally(versions, weights.of(versions.keys)))


class _OddReads:
    """The reads that are no prefix of the longest read of their key, with their elements.

    In a sound history there are none.
    """

    def __init__(self, versions: Versions) -> None:
        rows = versions.rows
        self.read = np.flatnonzero(~versions.is_version)
        length = versions.read_length[self.read]
        self.owner = np.repeat(np.arange(len(self.read)), length)  # For each element, the place of its read in `read`.
        self.elements = rows.elements[expand(rows.lists.start[rows.reads.of_list[self.read]], length)]
        self.slot = versions.slots.of(np.repeat(versions.read_code[self.read], length), self.elements)


def _tally(versions: Versions, weights: Weights) -> Counter[str]:
    """Sizes, and the witnesses by `weights` of the versions' keys."""
    rows, code, append_code = versions.rows, versions.read_code, versions.append_code
    has_failed = np.zeros(len(versions.keys), np.bool_)
    has_failed[append_code[rows.appends.outcome == FAIL]] = True
    has_passing = np.zeros(len(versions.keys), np.bool_)
    has_passing[append_code[~rows.appends.is_final]] = True
    is_ok = rows.appends.outcome == OK
    is_placed = np.zeros(len(rows.appends.op) + 1, np.bool_)
    is_placed[versions.writer] = True
    shown, in_turn = code[versions.read_length > 0], append_code[rows.appends.is_again & is_placed[:-1]]
    return Counter(
        {
            "keys": len(versions.keys),
            "appends-ok": int(np.count_nonzero(is_ok)),
            "appends-placed": int(np.count_nonzero(is_ok & is_placed[:-1])),
            "elements-without-writer": int(np.count_nonzero(versions.writer < 0)),
            "keys-unordered": int(np.count_nonzero(_has_two_unseen(versions))),
            "keys-contradicted": len(distinct(versions.list_code[versions.disputed])),
            "unwritten-twice": int(np.count_nonzero(_has_two_firsts(versions))),
            "garbage-read": weights.count(shown),
            "G1a": weights.count(code[has_failed[code]]),
            "G1b": weights.count(code[has_passing[code]]),
            "incompatible-order": weights.count(shown) - weights.count(distinct(shown)) + weights.count(in_turn),
            "dirty-update": weights.count(append_code[is_ok & has_failed[append_code]]),
            "lost-update": weights.count(code[rows.reads.is_update]),
        }
    )


def _has_two_unseen(versions: Versions) -> Bools:
    """True for keys with appends of two transactions that have no sure place: the order of these is unknown.

    An unclear transaction counts: a read of another key may show that it took effect.
    """
    rows = versions.rows
    is_unseen = rows.appends.outcome != FAIL
    is_unseen[versions.writer[versions.is_sure & (versions.writer >= 0)]] = False
    unseen = np.flatnonzero(is_unseen)
    code, op = versions.append_code[unseen], rows.appends.op[unseen].astype(np.int64)
    least, greatest = np.full(len(versions.keys), FAR), np.full(len(versions.keys), -1)
    np.minimum.at(least, code, op)
    np.maximum.at(greatest, code, op)
    result: Bools = least < greatest
    return result


def _has_two_firsts(versions: Versions) -> Bools:
    """True for keys with elements without an append, unless all reads begin with these: they were the initial list."""
    unwritten = np.flatnonzero(versions.writer < 0)
    code = versions.order_code[unwritten]
    count = np.bincount(code, minlength=len(versions.keys))
    result: Bools = np.bincount(code, unwritten - versions.order_start[code] >= count[code], len(versions.keys)) > 0
    shown = versions.last_place + 1 - versions.order_start[versions.read_code]
    shown[versions.last_place < 0] = 0
    is_shorter = shown < count[versions.read_code]
    result |= np.bincount(versions.read_code[is_shorter], minlength=len(versions.keys)) > 0
    return result


def _incompatible_order(versions: Versions) -> tuple[Sighting, ...]:
    """Keys with a read that is no prefix of the longest; the count is of keys."""
    rows = versions.rows
    odd = np.flatnonzero(~versions.is_version)
    code = versions.read_code[odd]
    longest = rows.lists.op[versions.longest[code]].astype(np.int64)
    ops = rows.reads.op[odd].astype(np.int64)
    return seen("incompatible-order", len(distinct(code)), op=ops, key=versions.keys[code], other=longest)


def _disordered(versions: Versions) -> tuple[Sighting, ...]:
    """Appends of one transaction that a read shows in another order, or only the later of them."""
    rows = versions.rows
    at = np.flatnonzero((~rows.appends.is_final | rows.appends.is_again) & versions.is_vertex[:-1])
    at = at[np.lexsort((at, versions.append_code[at], rows.appends.op[at]))]
    place = np.full(len(rows.appends.op) + 1, FAR)
    place[versions.writer] = np.arange(len(versions.writer))  # Elements without a writer (-1) go to the last entry.
    one, other = at[:-1], at[1:]
    is_pair = (rows.appends.op[one] == rows.appends.op[other]) & (
        versions.append_code[one] == versions.append_code[other]
    )
    hit = other[is_pair & (place[other] < place[one])]
    return seen(
        "incompatible-order",
        len(hit),
        op=rows.lists.op[versions.longest[versions.append_code[hit]]].astype(np.int64),
        key=rows.appends.key[hit],
        element=rows.appends.value[hit],
        other=rows.appends.op[hit].astype(np.int64),
    )


def _duplicate_elements(versions: Versions, odd: _OddReads) -> tuple[Sighting, ...]:
    """Reads that show an element twice."""
    # The first place of each key's longest read that repeats an element: all reads that reach it show it as well.
    places = np.flatnonzero(versions.is_repeated)
    first = np.full(len(versions.keys), FAR)
    np.minimum.at(first, versions.seen_code[places], places)
    reach = versions.seen_start[versions.read_code] + versions.read_length
    plain = np.flatnonzero(versions.is_version & (reach > first[versions.read_code]))
    plain_elements = versions.seen[first[versions.read_code[plain]]]

    order = np.lexsort((odd.elements, odd.owner))
    owner, element = odd.owner[order], odd.elements[order]
    again = np.flatnonzero(~first_of_each(owner) & ~first_of_each(element))
    again = again[first_of_each(owner[again])]
    reads = np.concatenate((plain, odd.read[owner[again]]))
    return seen(
        "duplicate-elements",
        len(reads),
        op=versions.rows.reads.op[reads].astype(np.int64),
        key=versions.keys[versions.read_code[reads]],
        element=np.concatenate((plain_elements, element[again])),
    )


def _future_reads(versions: Versions) -> tuple[Sighting, ...]:
    """Elements that an ok transaction reads before it appends them; the count is of elements."""
    rows = versions.rows
    at = np.flatnonzero(rows.appends.is_foreseen)
    op = rows.appends.op[at].astype(np.int64)
    return seen("future-read", len(at), op=op, key=rows.appends.key[at], element=rows.appends.value[at])


def _aborted_reads(versions: Versions, odd: _OddReads) -> tuple[Sighting, ...]:
    """Reads that show, at any place, an element that a failed transaction appended."""
    return _reads_showing("G1a", versions, odd, np.append(versions.rows.appends.outcome == FAIL, False))


def _garbage_reads(versions: Versions, odd: _OddReads) -> tuple[Sighting, ...]:
    """Reads that show, at any place, an element that no transaction appended."""
    return _reads_showing(
        "garbage-read", versions, odd, np.append(np.zeros(len(versions.rows.appends.op), np.bool_), True)
    )


def _reads_showing(anomaly: str, versions: Versions, odd: _OddReads, is_bad: Bools) -> tuple[Sighting, ...]:
    """Reads with an element of a bad writer. `is_bad` has a flag for each append, and a last one for "no writer"."""
    places = np.flatnonzero(is_bad[versions.seen_writer])
    first = np.full(len(versions.keys), FAR)
    np.minimum.at(first, versions.seen_code[places], places)
    reach = versions.seen_start[versions.read_code] + versions.read_length
    plain = np.flatnonzero(versions.is_version & (reach > first[versions.read_code]))
    plain_place = first[versions.read_code[plain]]

    writer = versions.writer_of_slot[odd.slot]
    hit = np.flatnonzero(is_bad[writer])
    hit = hit[first_of_each(odd.owner[hit])]
    return _reads_of(
        anomaly,
        versions,
        np.concatenate((plain, odd.read[odd.owner[hit]])),
        np.concatenate((versions.seen_writer[plain_place], writer[hit])),
        np.concatenate((versions.seen[plain_place], odd.elements[hit])),
    )


def _intermediate_reads(versions: Versions) -> tuple[Sighting, ...]:
    """Reads whose last element is an append of another transaction, but not that transaction's last one to the key."""
    rows = versions.rows
    is_passing = np.append(~rows.appends.is_final, False)
    reads = np.flatnonzero(is_passing[versions.last_writer])
    writers = versions.last_writer[reads]
    is_other = rows.appends.op[writers] != rows.reads.op[reads]
    return _reads_of("G1b", versions, reads[is_other], writers[is_other], rows.appends.value[writers[is_other]])


def _reads_of(
    anomaly: str, versions: Versions, reads: Int64s, writers: Int64s, elements: Int64s
) -> tuple[Sighting, ...]:
    rows = versions.rows
    return seen(
        anomaly,
        len(reads),
        op=rows.reads.op[reads].astype(np.int64),
        key=versions.keys[versions.read_code[reads]],
        element=elements,
        other=np.append(rows.appends.op, np.int32(NONE))[writers].astype(np.int64),
        is_listed=anomaly == "garbage-read",
    )


def _dirty_updates(versions: Versions) -> tuple[Sighting, ...]:
    """Elements of ok transactions that follow those of failed ones.

    Elements between them are skipped if they are of info transactions, or have no append. The example names the
    earliest of consecutive failed transactions.
    """
    rows = versions.rows
    outcome = np.append(rows.appends.outcome, np.int8(INFO))[versions.writer]
    failed = np.flatnonzero(outcome == FAIL)
    if not len(failed):
        return ()
    place = np.arange(len(outcome))
    # The start of a key counts as written by an ok transaction.
    begin = versions.order_start[versions.order_code]
    decided = np.maximum.accumulate(np.where(outcome != INFO, place, -1))
    last_ok = np.maximum.accumulate(np.where(outcome == OK, place, -1))
    before = np.concatenate(([-1], decided[:-1]))
    hit = np.flatnonzero((outcome == OK) & (before >= begin) & (outcome[before] == FAIL))
    since = np.maximum(begin[hit], np.concatenate(([-1], last_ok[:-1]))[hit] + 1)
    first_failed = failed[np.searchsorted(failed, since)]
    writer = versions.writer[hit]
    return seen(
        "dirty-update",
        len(hit),
        op=rows.appends.op[writer].astype(np.int64),
        key=versions.keys[versions.order_code[hit]],
        element=rows.appends.value[writer],
        other=rows.appends.op[versions.writer[first_failed]].astype(np.int64),
    )


def _lost_updates(versions: Versions, odd: _OddReads) -> tuple[Sighting, ...]:
    """Versions that two or more ok transactions read before they appended to the key; the count is of versions."""
    rows = versions.rows
    plain = np.flatnonzero(rows.reads.is_update & versions.is_version)
    longest = int(versions.read_length.max(initial=0)) + 1
    version = versions.read_code[plain] * longest + versions.read_length[plain]
    base = int(version.max(initial=0)) + 1
    strange = list(_odd_versions(versions, odd))
    reads = np.concatenate((plain, np.array([read for read, _ in strange], np.int64)))
    version = np.concatenate((version, np.array([base + number for _, number in strange], np.int64)))

    op = rows.reads.op[reads].astype(np.int64)
    order = np.lexsort((op, version))
    op, version, reads = op[order], version[order], reads[order]
    is_first = first_of_each(version)
    has_second = np.append(~is_first[1:], False)
    at = np.flatnonzero(is_first & has_second)
    return seen("lost-update", len(at), op=op[at], key=versions.keys[versions.read_code[reads[at]]], other=op[at + 1])


def _odd_versions(versions: Versions, odd: _OddReads) -> Iterator[tuple[int, int]]:
    """The rows of odd reads that begin an update, each with a number: equal for reads that show equal lists."""
    is_update: Bools = versions.rows.reads.is_update[odd.read]
    bounds = np.searchsorted(odd.owner, np.arange(len(odd.read) + 1))
    numbers: dict[tuple[int, bytes], int] = {}
    for at in np.flatnonzero(is_update).tolist():
        content = odd.elements[bounds[at] : bounds[at + 1]].tobytes()
        code = int(versions.read_code[odd.read[at]])
        yield int(odd.read[at]), numbers.setdefault((code, content), len(numbers))
