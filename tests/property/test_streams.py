"""The stream rules agree with their slow twins on random small streams, and accuse no correct one."""

from collections.abc import Callable

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from checkers.streams.rules.watermarks.late_event import late_events
from checkers.streams.rules.watermarks.missing_event import missing_events
from checkers.streams.rules.watermarks.torn_unit import torn_units
from checkers.streams.rules.watermarks.watermark_regress import regressions
from checkers.streams.view import StreamView, defect, stream_view
from harness.core.promises import StreamContract
from tests.amount import count
from tests.oracles.streams import Oracle
from tests.stream_generator import correct, damaged
from tests.stream_language import Event, Write, deliveries_of, source_of

any_contract = st.builds(
    StreamContract,
    closed=st.sampled_from(["<", "<="]),
    cut=st.sampled_from(["delivery", "position", "unknown"]),
    position=st.sampled_from(["offset", "epoch"]),
    resume=st.sampled_from(["after", "at"]),
    atomic_unit=st.sampled_from(["none", "response", "transaction", "transaction", "epoch"]),
    unit_scope=st.sampled_from(["partition", "global"]),
    unit_rows=st.sampled_from(["final", "each"]),
    versions=st.sampled_from(["every", "every", "latest-per-epoch", "latest"]),
    is_position_unique=st.sampled_from([True, True, False]),
    identity=st.sampled_from(["position+key", "position+key+ordinal", "position+key+value"]),
    wm_scope=st.sampled_from(["session", "subscriber", "partition", "global"]),
    has_noop_events=st.sampled_from([True, True, False]),
    system_events=st.sampled_from([(), (), ("expiry",)]),
    order_key=st.sampled_from(["none", "key", "partition", "global"]),
    delivery=st.sampled_from(["exactly-once", "at-least-once", "at-most-once"]),
    replay=st.sampled_from(["resume", "session"]),
    is_position_global=st.sampled_from([True, True, False]),
    has_gap_marker=st.booleans(),
    wm_idle=st.sampled_from(["moves", "moves", "rests"]),
    realtime=st.sampled_from(["none", "follows"]),
    is_whole_least=st.sampled_from([False, False, True]),
    epochs=st.sampled_from(["units", "owners"]),
    backfill=st.sampled_from(["partial", "whole"]),
    events_at_position=st.sampled_from(["many", "many", "many", "one"]),
    tail=st.sampled_from(["open", "settled"]),
    resumes_behind_checkpoint=st.booleans(),
)


# A position and a key are an identity only where a position has one event for each key.
contracts = any_contract.filter(lambda contract: defect(deliveries_of([]), contract) is None)
SEEDS = st.integers(0, 2**40)
MANY = settings(deadline=None, max_examples=count(250))


def broken(
    seed: int, contract: StreamContract, spoiled: Callable[[int, list[Event]], list[Event]]
) -> tuple[list[Event], list[Write]]:
    """A damaged stream, every other one spoiled further, if the contract lets it be judged."""
    log, source = damaged(seed, contract)
    log = spoiled(seed, log) if seed % 2 else log
    assume(log)
    assume(defect(deliveries_of(log), contract) is None)
    return log, source


def view_of(log: list[Event], source: list[Write], contract: StreamContract) -> StreamView:
    return stream_view(deliveries_of(log), source_of(source), contract)


@MANY
@given(SEEDS, contracts)
def test_late_events_and_regressions_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = damaged(seed, contract)
    assume(defect(deliveries_of(stream[0]), contract) is None)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    below, equal = oracle.late()
    late, boundary = late_events(view)
    assert dict(zip(late.row.tolist(), late.watermark.tolist(), strict=True)) == below
    if contract.closed == "<":
        assert (len(boundary.row), boundary.legal) == (0, len(equal))
    else:
        assert dict(zip(boundary.row.tolist(), boundary.watermark.tolist(), strict=True)) == equal
    narrow, wide = oracle.late_witnesses(is_wide=False), oracle.late_witnesses(is_wide=True)
    assert narrow[0] <= late.witnesses <= wide[0]
    assert narrow[1] <= boundary.witnesses <= wide[1]
    assert late.witnesses >= len(late.row)
    assert boundary.witnesses >= len(boundary.row)
    backward = regressions(view)
    assert set(backward.watermark.tolist()) == oracle.regressions()
    assert all(earlier < later for earlier, later in zip(backward.row, backward.watermark, strict=True))
    assert backward.witnesses == oracle.regress_witnesses()


@MANY
@given(SEEDS, contracts)
def test_missing_events_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = damaged(seed, contract)
    assume(defect(deliveries_of(stream[0]), contract) is None)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    ruling = missing_events(view)
    found = {
        (oracle.scope(oracle.log[mark]), oracle.source[write]): mark
        for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True)
    }
    assert len(found) == len(ruling.watermark)
    assert found == oracle.missing()
    assert ruling.witnesses == oracle.missing_witnesses()


@MANY
@given(SEEDS, contracts)
def test_torn_units_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = damaged(seed, contract)
    assume(defect(deliveries_of(stream[0]), contract) is None)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    ruling = torn_units(view)
    found = {
        (oracle.scope(oracle.log[mark]), oracle.unit(oracle.source[write])): mark
        for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True)
    }
    assert len(found) == len(ruling.watermark)
    assert found == oracle.torn()
    assert ruling.witnesses == oracle.torn_witnesses()
    assert all(row < mark for row, mark in zip(ruling.row.tolist(), ruling.watermark.tolist(), strict=True))


@MANY
@given(SEEDS, contracts)
def test_a_correct_stream_is_accused_of_nothing(seed: int, contract: StreamContract) -> None:
    view = view_of(*correct(seed, contract), contract)
    rulings = (*late_events(view), regressions(view), missing_events(view), torn_units(view))
    assert [len(ruling.watermark) for ruling in rulings] == [0] * len(rulings)
