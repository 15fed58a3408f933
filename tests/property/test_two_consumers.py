"""Two consumers with lag, partitions and unclear writes: the anomalies are those of the plain definitions.

SEAMARK_FUZZ_COUNT is the number of logs, SEAMARK_FUZZ_SEED the first seed.
"""

from collections import Counter

from checkers.streams.task import judged
from checkers.streams.view import defect
from harness.core.promises import StreamContract
from tests.amount import FIRST_SEED, count
from tests.oracles import stream_events, stream_losses
from tests.oracles.streams import Oracle
from tests.worlds.streams.cases import LOG
from tests.worlds.streams.consumers import consumed, contract_of
from tests.worlds.streams.language import Event, Write, deliveries_of, source_of

COUNT = count(60)
NAMES = {
    *("late-event", "late-event-boundary", "watermark-regress", "missing-event", "resume-hole"),
    *("order-inversion", "duplicate-event", "phantom-event", "wrong-value"),
}


def defined(log: list[Event], source: list[Write], contract: StreamContract) -> set[str]:
    """The anomalies of a log, by plain loops."""
    oracle = Oracle(log, source, contract)
    below, equal = oracle.late()
    can_repeat = contract.delivery == "at-least-once" and contract.replay == "session"
    found = {
        "late-event": below,
        "late-event-boundary": equal if contract.closed == "<=" else (),
        "watermark-regress": oracle.regressions(),
        "missing-event": stream_losses.lost(oracle),
        "resume-hole": stream_losses.resume_holes(oracle),
        "order-inversion": stream_events.inversions(oracle),
        "duplicate-event": () if can_repeat else stream_events.duplicates(oracle),
        "phantom-event": stream_events.phantoms(oracle),
        "wrong-value": stream_events.wrong_values(oracle)[0],
    }
    return {name for name, rows in found.items() if rows}


def test_what_two_consumers_received_is_judged_by_the_definitions() -> None:
    seen: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        contract = contract_of(seed)
        log, source = consumed(seed)
        assert defect(deliveries_of(log), contract) is None, f"seed {seed}"
        outcome = judged(LOG, deliveries_of(log), source_of(source), contract)
        found = {example.anomaly for example in outcome.examples} & NAMES
        assert found == defined(log, source, contract), f"seed {seed}"
        seen.update(found or {"nothing"})
    assert seen["nothing"] > COUNT // 4, seen
    assert seen.total() > seen["nothing"], seen
