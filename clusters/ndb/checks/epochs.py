"""Epochs as declared: one for each transaction (guarantee G4), rising without holes, never used again (G15).

`double-epoch`: every source that shows a transaction's epoch must show the same one: the answer to its client, and each
of its rows in each session. A witness is a transaction whose epoch is shown twice or more.

`epoch-shape` has two parts. Witnesses: restarts of the whole cluster with an epoch before them, and pairs of part 2.
1. No epoch is used again. A restart of the whole cluster begins with an epoch above all that were seen before, and
   operations invoked after it get none below. Seen means reported by an operation or delivered to a subscriber. Rows
   received after the restart are not checked, because they may have been in flight when the cluster failed.
2. Within a session epoch (g, m) is followed by (g, m + 1), or (h, 0) with h > g. Any higher one may follow where the
   cluster's view changed in between, or the subscription was opened again. Watermarks that go back are another finding.
Source: specs N1.6 and N2; the epoch is GCI << bits | micro, with the bits of `Bounds.saved_bits`.
"""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from checkers.columns.arrow import flags, integers
from checkers.columns.files import read_columns
from checkers.columns.parts import constant
from checkers.columns.runs import codes, first_of_each
from checkers.columns.table import concat, ordered_by, take
from checkers.engine.protocol import Check, Context
from checkers.history.generations import Restart, restarts
from checkers.history.names import EpochName, Names, epoch_name
from checkers.history.tables import rows
from checkers.history.troubles import Trouble, judgement
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, OK, Bools, Int64s
from harness.core.verdict import Judgement

CHECKER: Final = "epochs"
DOUBLE: Final = "double-epoch"
SHAPE: Final = "epoch-shape"
ANOMALIES: Final = {
    DOUBLE: Anomaly(
        meaning="One transaction appears in two epochs.", title="Transaction in two epochs", cause=Cause.EPOCH
    ),
    SHAPE: Anomaly(
        meaning="An epoch does not consist of the changes that its declaration names.",
        title="Broken sequence of epochs",
        cause=Cause.EPOCH,
    ),
}
ANSWER: Final = -1  # In place of a subscriber: the observation is a client's answer.


class Received(Struct, frozen=True, kw_only=True):
    """The events that subscribers received, in order of receipt: arrays of one length.

    NEVER stands for a missing number.
    """

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


class Answers(Struct, frozen=True, kw_only=True):
    """The ok operations with an epoch: arrays of one length. `commit` is NEVER for one that wrote nothing."""

    index: Int64s
    invoke_seq: Int64s
    complete_seq: Int64s
    txn: Int64s
    epoch: Int64s
    commit: Int64s


class Shown(Struct, frozen=True):
    """Observations of transactions' epochs. `seq` is the record that shows each; `at` is the operation or the key."""

    unit: Int64s
    epoch: Int64s
    subscriber: Int64s
    seq: Int64s
    at: Int64s


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all epochs of a history. Raises HistoryError if it is damaged."""
    received, answers, known = read_received(history), read_answers(history), restarts(history)
    bits = context.bounds.saved_bits
    show = epoch_name(bits)
    double, units = _double(received, answers, context.name, show)
    again, begun = _again(received, answers, known, show)
    holes, pairs = _holes(received, _views(history), bits, show)
    return judgement(
        CHECKER,
        ANOMALIES,
        (*double, *again, *holes),
        {DOUBLE: units, SHAPE: begun + pairs},
        facts={"restarts": begun, "successive_epochs": pairs},
        scope=(),
    )


def read_received(history: Path) -> Received:
    """The events of a history that show epochs, by seq. Raises HistoryError."""
    columns = ["seq", "subscriber", "session", "kind", "key", "position", "epoch", "unit"]
    table = read_columns(history / "events.parquet", columns).sort_by("seq")
    names = tuple(sorted(pc.unique(table["subscriber"]).to_pylist()))
    kind = table["kind"]
    return Received(
        names=names,
        subscriber=pc.index_in(table["subscriber"], value_set=pa.array(names, pa.string())).to_numpy().astype(np.int64),
        is_row=flags(pc.equal(kind, "row")),
        is_watermark=flags(pc.equal(kind, "watermark")),
        is_break=flags(pc.equal(kind, "open")) | flags(pc.equal(kind, "gap")),
        **{each: integers(table[each], NEVER) for each in ("seq", "session", "key", "position", "epoch", "unit")},
    )


def read_answers(history: Path) -> Answers:
    """The ok operations of a history that have an epoch, by index. Raises HistoryError."""
    columns = ["index", "invoke_seq", "complete_seq", "txn", "epoch", "commit_ts"]
    ops = read_columns(history / "ops.parquet", columns, outcome=[OK])
    numbers = {each: integers(ops[each], NEVER) for each in columns}
    every = Answers(commit=numbers.pop("commit_ts"), **numbers)
    return ordered_by(take(every, every.epoch != NEVER), "index")


def _views(history: Path) -> tuple[Int64s, Int64s]:
    """Journal positions where nodes installed views, and the epochs that the nodes knew then; both ascending."""
    views = rows(history, "states", ["seq", "position"], object=["view"])
    seqs, positions = ([NEVER if view[name] is None else view[name] for view in views] for name in ("seq", "position"))
    return np.sort(np.array(seqs, np.int64)), np.sort(np.array(positions, np.int64))


def _double(received: Received, answers: Answers, name: Names, show: EpochName) -> tuple[list[Trouble], int]:
    """The first transaction that is shown in two epochs, and the number of transactions shown twice or more."""
    shown = ordered_by(_shown(received, answers), "unit", "epoch", "seq")
    if not len(shown.unit):
        return [], 0
    first = np.flatnonzero(first_of_each(shown.unit))
    last = np.append(first[1:], len(shown.unit)) - 1
    bad = np.flatnonzero(shown.epoch[first] != shown.epoch[last])
    witnesses = int(np.count_nonzero(last > first))
    if not len(bad):
        return [], witnesses
    group = int(bad[np.argmin(np.minimum.reduceat(shown.seq, first)[bad])])
    low, end = int(first[group]), int(last[group])
    high = low + int(np.searchsorted(shown.epoch[low : end + 1], shown.epoch[end]))
    both = [(int(shown.epoch[row]), _where(shown, row, received, name)) for row in (low, high)]
    says = " and ".join(f"{show(each)} in {where}" for each, where in both)
    transid = int(shown.unit[low])
    trouble = Trouble(
        DOUBLE,
        f"Transaction {transid} has epoch {says}.",
        (transid, *(each for each, _ in both)),
        ops=tuple(int(shown.at[row]) for row in (low, high) if shown.subscriber[row] == ANSWER),
        events=tuple(int(shown.seq[row]) for row in (low, high) if shown.subscriber[row] != ANSWER),
        count=len(bad),
    )
    return [trouble], witnesses


def _shown(received: Received, answers: Answers) -> Shown:
    """Every observation of a transaction's epoch. An epoch that equals its row's position is not counted twice."""
    named = received.is_row & (received.unit != NEVER) & (received.position != NEVER)
    other = named & (received.epoch != NEVER) & (received.epoch != received.position)
    committed = (answers.txn != NEVER) & (answers.commit != NEVER)
    differs = committed & (answers.commit != answers.epoch)
    by_event = [
        take(Shown(received.unit, epoch, received.subscriber, received.seq, received.key), rows)
        for epoch, rows in ((received.position, named), (received.epoch, other))
    ]
    nobody = constant(ANSWER, len(answers.txn))
    by_answer = [
        take(Shown(answers.txn, epoch, nobody, answers.complete_seq, answers.index), rows)
        for epoch, rows in ((answers.epoch, committed), (answers.commit, differs))
    ]
    return concat([*by_event, *by_answer])


def _where(shown: Shown, row: int, received: Received, name: Names) -> str:
    """The place of an observation as a phrase for a sentence."""
    if shown.subscriber[row] == ANSWER:
        return f"the answer to its client (T{shown.at[row]})"
    return f"the row of {name.key(int(shown.at[row]))} that {received.names[shown.subscriber[row]]} received"


def _again(
    received: Received, answers: Answers, known: tuple[Restart, ...], show: EpochName
) -> tuple[list[Trouble], int]:
    """Violations by epochs that were used again, and the number of restarts that were checked.

    A restart may begin with an epoch that was used, or an operation invoked after it may get an epoch from before.
    """
    troubles: list[Trouble] = []
    count = 0
    is_placed = (received.position != NEVER) & (received.is_row | received.is_watermark)
    for restart in known:
        answered = np.flatnonzero(answers.complete_seq < restart.seq)
        before = np.flatnonzero(is_placed & (received.seq < restart.seq))
        highest = max(answers.epoch[answered].max(initial=-1), received.position[before].max(initial=-1))
        count += bool(highest >= 0)
        begins = f"After restart {restart.number} of the whole cluster epochs begin with {show(restart.first_epoch)}"
        if highest >= restart.first_epoch:
            ops = answers.index[answered[answers.epoch[answered] == highest]][:1].tolist()
            events = [] if ops else received.seq[before[received.position[before] == highest]][:1].tolist()
            where = f"T{ops[0]} was answered with" if ops else "a subscriber had received"
            sentence = f"{begins}, but before it {where} epoch {show(int(highest))}: epochs are used twice."
            facts = ("used", restart.number, restart.first_epoch, int(highest))
            troubles.append(Trouble(SHAPE, sentence, facts, tuple(ops), tuple(events), group="used"))
        for row in np.flatnonzero((answers.invoke_seq > restart.seq) & (answers.epoch < restart.first_epoch)):
            op, epoch = int(answers.index[row]), int(answers.epoch[row])
            sentence = f"{begins}, but T{op}, which was invoked after it, was answered with epoch {show(epoch)}."
            facts = ("below", restart.number, restart.first_epoch, op)
            troubles.append(Trouble(SHAPE, sentence, facts, (op,), group="below"))
    return sorted(troubles, key=lambda trouble: trouble.group == "below"), count


def _holes(
    received: Received, views: tuple[Int64s, Int64s], bits: int | None, show: EpochName
) -> tuple[list[Trouble], int]:
    """The first epochs that a session skipped, and the number of successive pairs that were compared."""
    if bits is None:
        return [], 0
    points = np.flatnonzero((received.is_watermark & (received.position != NEVER)) | received.is_break)
    _, scope = codes(received.subscriber * (int(received.session.max(initial=0)) + 1) + received.session)
    points = points[np.argsort(scope[points], kind="stable")]
    is_mark = received.is_watermark[points]
    pair = np.flatnonzero(~first_of_each(scope[points])[1:] & is_mark[:-1] & is_mark[1:])
    one, other = points[pair], points[pair + 1]
    before, after = received.position[one], received.position[other]
    rises = after > before
    is_new_gci = (after >> bits > before >> bits) & (after & ((1 << bits) - 1) == 0)
    changed = _between(views[0], received.seq[one], received.seq[other]) | _between(views[1], before, after)
    bad = np.flatnonzero(rises & ~changed & (after != before + 1) & ~is_new_gci)
    count = int(np.count_nonzero(rises & ~changed))
    if not len(bad):
        return [], count
    worst = int(bad[np.argmin(received.seq[other[bad]])])
    who, session = received.names[received.subscriber[one[worst]]], int(received.session[one[worst]])
    low, high = int(before[worst]), int(after[worst])
    sentence = (
        f"In session {session} of {who} epoch {show(low)} was followed by {show(high)}, neither the next one nor the "
        f"first of a later GCI, and no view had changed in between."
    )
    events = (int(received.seq[one[worst]]), int(received.seq[other[worst]]))
    facts = ("hole", who, session, low, high)
    return [Trouble(SHAPE, sentence, facts, events=events, group="hole", count=len(bad))], count


def _between(values: Int64s, low: Int64s, high: Int64s) -> Bools:
    """True for each interval [low, high] that contains one of `values`, which ascend."""
    result: Bools = np.searchsorted(values, low, side="left") < np.searchsorted(values, high, side="right")
    return result


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
