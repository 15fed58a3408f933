"""Checked in batches, whatever the cuts, a stream shows the same violations at the same events as checked whole."""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from checkers.columns.table import take
from checkers.history.streams import NO_WRITES
from checkers.streams.online import ONLINE, Online, Violation, breaches
from checkers.streams.rules.events.duplicate_event import repetitions
from checkers.streams.rules.events.order_inversion import order_inversions
from checkers.streams.rules.watermarks.late_event import late_events
from checkers.streams.rules.watermarks.watermark_regress import regressions
from checkers.streams.view import defect, stream_view
from harness.core.columns import BACKFILL, NEVER, ROW, Deliveries
from harness.core.promises import StreamContract
from tests.amount import count
from tests.worlds.streams.drawn import SEEDS, contracts
from tests.worlds.streams.generator import correct, damaged
from tests.worlds.streams.language import Event, Write, deliveries_of

Found = tuple[str, int]
MANY = settings(max_examples=count(75))
KINDS = [
    StreamContract(closed="<=", cut="delivery", position="offset", wm_scope="session", epochs="owners"),
    StreamContract(closed="<=", cut="position", position="offset", delivery="exactly-once", is_position_unique=False),
]
NAMELESS = StreamContract(  # Of two units at one position, with rows of one number, one has a name.
    closed="<",
    cut="delivery",
    position="epoch",
    resume="at",
    delivery="exactly-once",
    replay="session",
    atomic_unit="response",
    unit_rows="final",
    versions="latest",
    is_position_unique=False,
    is_position_global=False,
    wm_scope="session",
    has_gap_marker=True,
    has_noop_events=False,
    realtime="follows",
)
CUTS = st.lists(st.integers(0, 60), max_size=12)


def of(deliveries: Deliveries, subscriber: int | None) -> Deliveries:
    """The events of that subscriber, or of all."""
    if subscriber is None:
        return deliveries
    return take(deliveries, deliveries.subscriber == subscriber)


def in_batches(deliveries: Deliveries, contract: StreamContract, cuts: list[int]) -> list[Violation]:
    """What the online check tells of the stream, cut there."""
    online = Online(contract)
    found: list[Violation] = []
    for batch in np.split(np.arange(len(deliveries.kind)), sorted(cuts)):
        found += online.feed(take(deliveries, batch))
    return found


def whole(deliveries: Deliveries, contract: StreamContract) -> Counter[Found]:
    """What the rules tell of the whole stream: the anomalies, each with the event that shows it."""
    is_apart = contract.wm_scope in ("session", "subscriber")
    result: Counter[Found] = Counter()
    for who in np.unique(deliveries.subscriber).tolist() if is_apart else [None]:
        log = of(deliveries, who)
        view = stream_view(log, NO_WRITES, contract)
        late, boundary = late_events(view)
        shown = {
            "late-event": late.row,
            "late-event-boundary": boundary.row,
            "watermark-regress": regressions(view).watermark,
            "order-inversion": order_inversions(view).watermark,
            "duplicate-event": repetitions(view).watermark,
        }
        result.update((name, int(log.seq[row])) for name, rows in shown.items() for row in rows)
        for name in ("torn-unit", "zombie"):
            for breach in set(breaches(log, contract, (name,))):
                counts = (
                    n for n in range(len(log.kind) + 1) if breach in breaches(take(log, slice(n)), contract, (name,))
                )
                result[name, int(log.seq[next(counts) - 1])] += 1
    return result


def with_sizes(log: list[Event], source: list[Write], contract: StreamContract) -> list[Event]:
    """The log, its rows with the sizes of their units, where these can be told."""
    if contract.versions != "every":
        return log
    units: dict[int, set[tuple[int, int]]] = {}
    for w in source:
        number = 0 if contract.unit_rows == "final" else w.ordinal
        if w.position != NEVER:
            units.setdefault(w.txn, set()).add((w.key, number))
    return [
        replace(each, unit_rows=len(units.get(each.unit, ()))) if each.kind == ROW and each.unit in units else each
        for each in log
    ]


def has_wide_units(deliveries: Deliveries) -> bool:
    """Is there a unit with rows of two positions? What it lacks at a watermark nobody can tell before its end."""
    rows = np.isin(deliveries.kind, (ROW, BACKFILL)) & (deliveries.unit != NEVER)
    pairs = set(zip(deliveries.unit[rows].tolist(), deliveries.position[rows].tolist(), strict=True))
    return len(pairs) > len({unit for unit, _ in pairs})


@MANY
@given(SEEDS, contracts, CUTS, st.booleans())
def test_batches_show_what_the_whole_shows(
    seed: int, contract: StreamContract, cuts: list[int], is_announced: bool
) -> None:
    log, source = damaged(seed, contract)
    deliveries = deliveries_of(with_sizes(log, source, contract) if is_announced else log)
    assume(defect(deliveries, contract) is None)
    found = Counter((each.anomaly, each.seq) for each in in_batches(deliveries, contract, cuts))
    expected = whole(deliveries, contract)
    if has_wide_units(deliveries):
        found, expected = (
            Counter({what: n for what, n in each.items() if what[0] != "torn-unit"}) for each in (found, expected)
        )
    assert found == expected


@MANY
@given(SEEDS, contracts, CUTS)
@example(seed=5003162, contract=NAMELESS, cuts=[6, 25, 25, 41])
def test_a_correct_stream_is_accused_of_nothing(seed: int, contract: StreamContract, cuts: list[int]) -> None:
    log, _ = correct(seed, contract)
    assert in_batches(deliveries_of(log), contract, cuts) == []


def test_damaged_streams_break_every_rule() -> None:
    found: Counter[str] = Counter()
    for seed in range(60):
        contract = KINDS[seed % len(KINDS)]
        log, source = damaged(seed, contract)
        deliveries = deliveries_of(with_sizes(log, source, contract))
        if defect(deliveries, contract) is None:
            found.update({each.anomaly for each in in_batches(deliveries, contract, [5, 9, 14])})
    assert set(found) == set(ONLINE), "the comparison of batches with the whole says little"
