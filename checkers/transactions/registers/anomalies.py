"""Anomalies of registers that need no cycle of transactions: forbidden reads, and cycles of versions."""

from collections import Counter

import numpy as np

from checkers.columns.index import ascending, searched
from checkers.columns.runs import distinct, first_of_each
from checkers.columns.table import Join
from checkers.graph.sightings import Example, Report, Sighting, seen
from checkers.transactions.registers.order import Orders, VersionCycle
from checkers.transactions.registers.rows import ABSENT
from checkers.transactions.registers.versions import NOBODY, Registers
from harness.core.columns import FAIL, NOTHING, OK, Bools, Int64s

UNWRITTEN = "unwritten-read"
_SHOWN = 8  # The number of versions of a cycle that are shown.


def anomalies(registers: Registers, known: Orders, *, is_declared: bool = False) -> Report:
    """All anomalies of single registers, and for each the number of witnesses.

    `is_declared`: what all registers held at first is declared.
    """
    reads = _Reads(registers)
    sightings = (
        *reads.seen("future-read", reads.is_early & (reads.writer_op == reads.op)),
        *reads.seen("G1a", reads.outcome == FAIL),
        *reads.seen("G1b", reads.is_passing & (reads.writer_op != reads.op)),
        *reads.seen(
            UNWRITTEN if is_declared else "garbage-read", reads.is_value & (reads.writer_op == NOBODY), is_listed=True
        ),
        *_lost_updates(registers),
        *_cyclic_versions(registers, known.cycles),
        *_interleaved(reads),
    )
    tally = _tally(registers, reads, known)
    tally[UNWRITTEN] = tally["garbage-read"] * is_declared
    return Report(sightings, tally)


class _Reads:
    """The values that ok transactions read, except from themselves, with their writers: columns of one length."""

    def __init__(self, registers: Registers) -> None:
        touches, passing, odd = registers.rows.touches, registers.rows.passing, registers.rows.odd
        rows = np.flatnonzero((touches.outcome == OK) & (touches.read != ABSENT))
        self.version = np.concatenate((registers.read_version[rows], registers.odd_version))
        self.op = np.concatenate((touches.op[rows], odd.op)).astype(np.int64)
        self.key = np.concatenate((touches.key[rows], odd.key))
        self.value = np.concatenate((touches.read[rows], odd.value))
        self.is_value = self.value >= 0
        self.is_early = np.concatenate((np.ones(len(rows), np.bool_), odd.is_early))
        self.is_followed = np.concatenate((touches.write[rows] != ABSENT, odd.is_followed))
        final, passer = registers.writer[self.version], registers.passer[self.version]
        self.is_passing = (final == NOBODY) & (passer != NOBODY)
        ops, outcomes = np.append(touches.op, NOBODY), np.append(touches.outcome, np.int8(NOBODY))
        passing_ops = np.append(passing.op, NOBODY)
        passing_outcomes = np.append(passing.outcome, np.int8(NOBODY))
        self.writer_op = np.where(self.is_passing, passing_ops[passer], ops[final]).astype(np.int64)
        self.outcome = np.where(self.is_passing, passing_outcomes[passer], outcomes[final])

    def seen(self, anomaly: str, is_hit: Bools, *, is_listed: bool = False) -> tuple[Sighting, ...]:
        """The sighting of that anomaly: the reads for which `is_hit` is True, with an example.

        None if there are none.
        """
        rows = np.flatnonzero(is_hit)
        return seen(
            anomaly,
            len(rows),
            op=self.op[rows],
            key=self.key[rows],
            element=self.value[rows],
            other=self.writer_op[rows],
            is_listed=is_listed,
        )


def _tally(registers: Registers, reads: _Reads, known: Orders) -> Counter[str]:
    touches, passing = registers.rows.touches, registers.rows.passing
    failed = np.concatenate((touches.key[touches.outcome == FAIL], passing.key[passing.outcome == FAIL]))
    versions = distinct(reads.version[reads.is_value & (reads.writer_op == NOBODY)])
    # Only one of these can be the initial value, or none if that is read as nothing.
    of_key, nothing = (
        np.bincount(registers.code[each], minlength=len(registers.keys))
        for each in (versions, distinct(reads.version[reads.value == NOTHING]))
    )
    unwritten = (of_key > 0) & (of_key + nothing > 1)
    is_ok = (touches.outcome == OK) & (registers.write_version >= 0)
    return Counter(
        {
            "keys": len(registers.keys),
            "registers": len(registers.keys),
            "writes-ok": int(np.count_nonzero(is_ok)),
            "writes-placed": _placed(registers, known, distinct(registers.write_version[is_ok])),
            "pairs-given": len(known.given.earlier),
            "pairs-process": len(known.process.earlier),
            "pairs-real-time": len(known.real_time.earlier),
            "values-without-writer": len(versions),
            "G1a": int(np.count_nonzero(np.isin(reads.key, failed))),
            "G1b": int(np.count_nonzero(np.isin(reads.key, passing.key))),
            "garbage-read": int(np.count_nonzero(reads.is_value)),
            "unwritten-twice": int(np.count_nonzero(unwritten)),
            "cyclic-versions": len(known.given.earlier),
        }
    )


def _placed(registers: Registers, known: Orders, versions: Int64s) -> int:
    """The number of versions whose predecessor among these versions is known, or that are known to be the first.

    They are sorted by a guess from real time (see `axioms.moments.guesses`). A neighbour in that order counts as known
    if some source gives the order of the two.
    """
    left, met = (column.astype(np.int64) for column in registers.spans)
    order = versions[ascending(registers.code[versions], left[versions] + met[versions])]
    is_first = first_of_each(registers.code[order])
    one, other = order[:-1], order[1:]
    is_known = is_first[1:].copy()
    if len(known.real_time.earlier):
        is_known |= left[one] <= met[other]
    for pairs in (known.given, known.process):
        if len(pairs.earlier):
            is_open = np.flatnonzero(~is_known)
            known_pairs = distinct(pairs.earlier * registers.size + pairs.later)
            wanted = one[is_open] * registers.size + other[is_open]
            is_known[is_open] = np.append(known_pairs, -1)[searched(known_pairs, wanted)] == wanted
    return int(np.count_nonzero(is_first[:1])) + int(np.count_nonzero(is_known))


def _lost_updates(registers: Registers) -> tuple[Sighting, ...]:
    """Versions that two or more ok transactions read before they wrote the register; the count is of versions."""
    touches = registers.rows.touches
    rows = np.flatnonzero((touches.outcome == OK) & (touches.read != ABSENT) & (touches.write != ABSENT))
    rows = rows[np.lexsort((touches.op[rows], registers.read_version[rows]))]
    is_first = first_of_each(registers.read_version[rows])
    at = np.flatnonzero(is_first[:-1] & ~is_first[1:])
    one, other = rows[at], rows[at + 1]
    return seen("lost-update", len(at), op=registers.op(one), key=touches.key[one], other=registers.op(other))


def _interleaved(reads: _Reads) -> tuple[Sighting, ...]:
    """Pairs of transactions whose writes of a register interleave, which is a G0: the count is of registers and pairs.

    Each reads what the other wrote, final or not, before it writes itself. So neither wrote all before the other did. A
    graph over final writes alone would not name it; where that names a G0, this one is not reported.
    """
    is_met = reads.is_followed & (reads.writer_op != NOBODY) & (reads.writer_op != reads.op) & (reads.outcome != FAIL)
    rows = np.flatnonzero(is_met)
    key, reader, writer = reads.key[rows], reads.op[rows], reads.writer_op[rows]
    other = Join((key, reader, writer), (key, writer, reader)).first
    both = np.flatnonzero((other >= 0) & (reader < writer))
    both = both[np.lexsort((writer[both], reader[both], key[both]))]
    is_new = first_of_each(key[both]) | first_of_each(reader[both]) | first_of_each(writer[both])
    both = both[is_new]
    if not len(both):
        return ()
    value = reads.value[rows]
    examples = (
        Example(int(reader[at]), int(key[at]), int(value[at]), int(writer[at]), (int(value[other[at]]),))
        for at in both.tolist()
    )
    return (Sighting("G0", len(both), min(examples)),)


def _cyclic_versions(registers: Registers, cycles: tuple[VersionCycle, ...]) -> tuple[Sighting, ...]:
    """The cycles of versions.

    Each example has the versions that were met last: by real time two always precede each other.
    """
    if not cycles:
        return ()
    touches = registers.rows.touches
    _, met = registers.spans
    least = np.full(registers.size, np.iinfo(np.int64).max)
    for versions in (registers.first, registers.last):
        np.minimum.at(least, versions, touches.op)
    examples = []
    for cycle in cycles:
        late = cycle.versions[np.lexsort((registers.value[cycle.versions], -met[cycle.versions]))][:_SHOWN]
        op, key = int(least[late].min()), int(registers.keys[registers.code[late[0]]])
        examples.append(Example(op, key, versions=tuple(registers.value[late].tolist())))
    return (Sighting("cyclic-versions", len(cycles), min(examples)),)
