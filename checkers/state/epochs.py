"""Epochs as declared: one for each transaction (NDB-G4), rising without holes, never used again (G15).

`double-epoch`: every source that shows a transaction's epoch must show the same one: the answer to its client, and
each of its rows in each session. A witness is a transaction whose epoch is shown twice or more.

`epoch-shape` has two parts. Witnesses: restarts of the whole cluster with an epoch before them, and pairs of part 2.
1. No epoch is used again. A restart of the whole cluster begins with an epoch above all that were seen before, and
   operations invoked after it get none below. Seen means reported by an operation or delivered to a subscriber. Rows
   received after the restart are not checked, because they may have been in flight when the cluster failed.
2. Within a session epoch (g, m) is followed by (g, m + 1), or (h, 0) with h > g. Any higher one may follow where the
   cluster's view changed in between, or the subscription was opened anew. Watermarks that go back are another finding.
Source: specs N1.6 and N2; the epoch is GCI << bits | micro, with the bits of `Bounds.saved_bits`.
"""

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from checkers.columns.arrow import integers
from checkers.columns.files import DAMAGE
from checkers.columns.runs import codes, first_of_each
from checkers.history.generations import Restart, restarts
from checkers.transactions.acts import whole_table
from checkers.transactions.sentences import EpochName, Name, epoch_name, number
from harness.core.columns import NEVER, OK, Bools, Int64s
from harness.core.errors import HistoryError
from harness.core.promises import Bounds
from harness.core.verdict import Finding, Judgement

CHECKER: Final = "epochs"
DOUBLE: Final = "double-epoch"
SHAPE: Final = "epoch-shape"
ANOMALIES: Final = (DOUBLE, SHAPE)
ANSWER: Final = -1  # The subscriber of an observation that is a client's answer.


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The events that subscribers received, in order of receipt: arrays of one length. Missing numbers are NEVER."""

    names: tuple[str, ...]
    seq: Int64s
    subscriber: Int64s  # A place in `names`.
    session: Int64s
    is_row: Bools
    is_watermark: Bools
    is_break: Bools  # Where a subscription was opened, or had a gap.
    key: Int64s
    position: Int64s
    epoch: Int64s
    unit: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The ok operations with an epoch: arrays of one length. `commit` is NEVER for one that wrote nothing."""

    index: Int64s
    invoke_seq: Int64s
    complete_seq: Int64s
    txn: Int64s
    epoch: Int64s
    commit: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Observations of transactions' epochs. `seq` is the record that shows each; `at` is the operation or the key."""

    unit: Int64s
    epoch: Int64s
    subscriber: Int64s
    seq: Int64s
    at: Int64s


def check(history: Path, bounds: Bounds, name: Name = number) -> Judgement:
    """The judgement of all epochs of a history. Raises HistoryError if it is damaged."""
    told, answers, known = read_told(history), read_answers(history), restarts(history)
    show = epoch_name(bounds.saved_bits)
    double, units = _double(told, answers, name, show)
    again, begun = _again(told, answers, known, show)
    holes, pairs = _holes(told, _views(history), bounds.saved_bits, show)
    return Judgement(
        checker=CHECKER,
        findings=(*double, *again, *holes),
        witnesses={DOUBLE: units, SHAPE: begun + pairs},
        facts={"restarts": begun, "successive_epochs": pairs},
    )


def read_told(history: Path) -> Told:
    """The events of a history that show epochs, by seq. Raises HistoryError."""
    columns = ["seq", "subscriber", "session", "kind", "key", "position", "epoch", "unit"]
    table = whole_table(history, "events", columns).sort_by("seq")
    names = tuple(sorted(pc.unique(table["subscriber"]).to_pylist()))
    kind = table["kind"]
    return Told(
        names=names,
        subscriber=pc.index_in(table["subscriber"], value_set=pa.array(names, pa.string())).to_numpy().astype(np.int64),
        is_row=_is(kind, "row"),
        is_watermark=_is(kind, "watermark"),
        is_break=_is(kind, "open") | _is(kind, "gap"),
        **{each: integers(table[each], NEVER) for each in ("seq", "session", "key", "position", "epoch", "unit")},
    )


def read_answers(history: Path) -> Answers:
    """The ok operations of a history that have an epoch, by index. Raises HistoryError."""
    columns = ["index", "outcome", "invoke_seq", "complete_seq", "txn", "epoch", "commit_ts"]
    ops = whole_table(history, "ops", columns)
    rows = np.flatnonzero((integers(ops["outcome"], OK) == OK) & (integers(ops["epoch"], NEVER) != NEVER))
    rows = rows[np.argsort(integers(ops["index"], 0)[rows], kind="stable")]
    return Answers(
        commit=integers(ops["commit_ts"], NEVER)[rows],
        **{each: integers(ops[each], NEVER)[rows] for each in ("index", "invoke_seq", "complete_seq", "txn", "epoch")},
    )


def _is(kind: pa.ChunkedArray, name: str) -> Bools:
    result: Bools = pc.equal(kind, name).to_numpy().astype(np.bool_, copy=False)
    return result


def _views(history: Path) -> tuple[Int64s, Int64s]:
    """Journal positions where nodes installed views, and the epochs that they knew then; both ascending."""
    path = history / "states.parquet"
    if not path.is_file():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    try:
        table = pq.read_table(path, columns=["seq", "position"], filters=[("object", "=", "view")])
    except DAMAGE as problem:
        raise HistoryError(f"{path}: cannot be read ({problem}); if its run has a journal, check that") from problem
    return np.sort(integers(table["seq"], NEVER)), np.sort(integers(table["position"], NEVER))


def _double(told: Told, answers: Answers, name: Name, show: EpochName) -> tuple[tuple[Finding, ...], int]:
    """Findings of transactions that are shown in two epochs, and the number of those shown twice or more."""
    shown = _shown(told, answers)
    if not len(shown.unit):
        return (), 0
    order = np.lexsort((shown.seq, shown.epoch, shown.unit))
    unit, epoch = shown.unit[order], shown.epoch[order]
    first = np.flatnonzero(first_of_each(unit))
    last = np.append(first[1:], len(unit)) - 1
    bad = np.flatnonzero(epoch[first] != epoch[last])
    witnesses = int(np.count_nonzero(last > first))
    if not len(bad):
        return (), witnesses
    earliest = np.minimum.reduceat(shown.seq[order], first)[bad]
    group = int(bad[np.argmin(earliest)])
    low = int(order[first[group]])
    inside = order[first[group] : last[group] + 1]
    high = int(inside[np.flatnonzero(shown.epoch[inside] == epoch[last[group]])[0]])
    both = [(int(shown.epoch[row]), _where(shown, row, told, name)) for row in (low, high)]
    says = " and ".join(f"{show(each)} in {where}" for each, where in both)
    transid = int(shown.unit[low])
    finding = _finding(
        DOUBLE,
        (transid, *(each for each, _ in both)),
        f"Transaction {transid} has epoch {says}.",
        count=len(bad),
        ops=tuple(int(shown.at[row]) for row in (low, high) if shown.subscriber[row] == ANSWER),
        events=tuple(int(shown.seq[row]) for row in (low, high) if shown.subscriber[row] != ANSWER),
    )
    return (finding,), witnesses


def _shown(told: Told, answers: Answers) -> Shown:
    """Every observation of a transaction's epoch. An epoch that equals its row's position is not counted twice."""
    named = told.is_row & (told.unit != NEVER) & (told.position != NEVER)
    other = named & (told.epoch != NEVER) & (told.epoch != told.position)
    committed = (answers.txn != NEVER) & (answers.commit != NEVER)
    differs = committed & (answers.commit != answers.epoch)
    rows = np.concatenate((np.flatnonzero(named), np.flatnonzero(other)))
    ops = np.concatenate((np.flatnonzero(committed), np.flatnonzero(differs)))
    event_epochs = (told.position[named], told.epoch[other])
    return Shown(
        unit=np.concatenate((told.unit[rows], answers.txn[ops])),
        epoch=np.concatenate((*event_epochs, answers.epoch[committed], answers.commit[differs])),
        subscriber=np.concatenate((told.subscriber[rows], np.full(len(ops), ANSWER))),
        seq=np.concatenate((told.seq[rows], answers.complete_seq[ops])),
        at=np.concatenate((told.key[rows], answers.index[ops])),
    )


def _where(shown: Shown, row: int, told: Told, name: Name) -> str:
    """The place of an observation, for a sentence."""
    if shown.subscriber[row] == ANSWER:
        return f"the answer to its client (T{shown.at[row]})"
    return f"the row of {name(int(shown.at[row]))} that {told.names[shown.subscriber[row]]} received"


def _again(
    told: Told, answers: Answers, known: tuple[Restart, ...], show: EpochName
) -> tuple[tuple[Finding, ...], int]:
    """Findings of epochs used again, and the number of restarts that were checked.

    A restart may begin with an epoch that was used, or an operation invoked after it may get an epoch from before.
    """
    used: list[Finding] = []
    below: list[Finding] = []
    asked = 0
    is_placed = (told.position != NEVER) & (told.is_row | told.is_watermark)
    for restart in known:
        answered = np.flatnonzero(answers.complete_seq < restart.seq)
        received = np.flatnonzero(is_placed & (told.seq < restart.seq))
        highest = max(answers.epoch[answered].max(initial=-1), told.position[received].max(initial=-1))
        asked += bool(highest >= 0)
        begins = f"After restart {restart.number} of the whole cluster epochs begin with {show(restart.first_epoch)}"
        if highest >= restart.first_epoch:
            ops = answers.index[answered[answers.epoch[answered] == highest]][:1].tolist()
            events = [] if ops else told.seq[received[told.position[received] == highest]][:1].tolist()
            where = f"T{ops[0]} was answered with" if ops else "a subscriber had been told of"
            sentence = f"{begins}, but before it {where} epoch {show(int(highest))}: epochs are used twice."
            facts = ("used", restart.number, restart.first_epoch, int(highest))
            used.append(_finding(SHAPE, facts, sentence, ops=tuple(ops), events=tuple(events)))
        for row in np.flatnonzero((answers.invoke_seq > restart.seq) & (answers.epoch < restart.first_epoch)):
            op, epoch = int(answers.index[row]), int(answers.epoch[row])
            sentence = f"{begins}, but T{op}, which was invoked after it, was answered with epoch {show(epoch)}."
            below.append(_finding(SHAPE, ("below", restart.number, restart.first_epoch, op), sentence, ops=(op,)))
    first = (msgspec.structs.replace(findings[0], count=len(findings)) for findings in (used, below) if findings)
    return tuple(first), asked


def _holes(
    told: Told, views: tuple[Int64s, Int64s], bits: int | None, show: EpochName
) -> tuple[tuple[Finding, ...], int]:
    """Findings of epochs that a session skipped, and the number of successive pairs that were compared."""
    if bits is None:
        return (), 0
    rows = np.flatnonzero((told.is_watermark & (told.position != NEVER)) | told.is_break)
    _, scope = codes(told.subscriber * (int(told.session.max(initial=0)) + 1) + told.session)
    rows = rows[np.argsort(scope[rows], kind="stable")]
    pair = np.flatnonzero(~first_of_each(scope[rows])[1:] & told.is_watermark[rows[:-1]] & told.is_watermark[rows[1:]])
    one, other = rows[pair], rows[pair + 1]
    before, after = told.position[one], told.position[other]
    rises = after > before
    is_new_gci = (after >> bits > before >> bits) & (after & ((1 << bits) - 1) == 0)
    changed = _between(views[0], told.seq[one], told.seq[other]) | _between(views[1], before, after)
    bad = np.flatnonzero(rises & ~changed & (after != before + 1) & ~is_new_gci)
    count = int(np.count_nonzero(rises & ~changed))
    if not len(bad):
        return (), count
    worst = int(bad[np.argmin(told.seq[other[bad]])])
    who, session = told.names[told.subscriber[one[worst]]], int(told.session[one[worst]])
    low, high = int(before[worst]), int(after[worst])
    sentence = (
        f"In session {session} of {who} epoch {show(low)} was followed by {show(high)}, neither the next one nor the "
        f"first of a later GCI, and no view had changed in between."
    )
    events = (int(told.seq[one[worst]]), int(told.seq[other[worst]]))
    return (_finding(SHAPE, ("hole", who, session, low, high), sentence, count=len(bad), events=events),), count


def _between(values: Int64s, low: Int64s, high: Int64s) -> Bools:
    """True where one of the ascending values lies in [low, high]."""
    result: Bools = np.searchsorted(values, low, side="left") < np.searchsorted(values, high, side="right")
    return result


def _finding(
    anomaly: str,
    facts: tuple[object, ...],
    sentence: str,
    *,
    count: int = 1,
    ops: tuple[int, ...] = (),
    events: tuple[int, ...] = (),
) -> Finding:
    return Finding(
        fingerprint=blake2b(repr((anomaly, *facts)).encode(), digest_size=8).hexdigest(),
        anomaly=anomaly,
        checker=CHECKER,
        sentence=sentence,
        count=count,
        ops=ops,
        events=events,
    )
