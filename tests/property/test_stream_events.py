"""The rules about single events agree with their slow twins on random small streams, and accuse no correct one."""

from hypothesis import assume, example, given

from checkers.duplicates import duplicate_events
from checkers.order import order_inversions
from checkers.payload import phantom_events, wrong_values
from checkers.stream_view import defect
from harness.core.promises import StreamContract
from tests.oracles import stream_events
from tests.oracles.streams import Oracle
from tests.property.test_streams import MANY, SEEDS, contracts, view_of
from tests.stream_generator import correct, damaged
from tests.stream_language import deliveries_of

EXACTLY_ONCE = StreamContract(
    closed="<",
    cut="delivery",
    position="offset",
    atomic_unit="none",
    unit_scope="partition",
    unit_rows="final",
    identity="position+key",
    wm_scope="global",
    order_key="none",
    delivery="exactly-once",
)


@MANY
@given(SEEDS, contracts)
def test_order_inversions_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = damaged(seed, contract)
    assume(defect(deliveries_of(stream[0]), contract) is None)
    ruling, oracle = order_inversions(view_of(*stream, contract)), Oracle(*stream, contract)
    expected = stream_events.inversions(oracle)
    assert ruling.watermark.tolist() == sorted(expected)
    assert all(row in expected[mark] for row, mark in zip(ruling.row.tolist(), ruling.watermark.tolist(), strict=True))
    assert ruling.witnesses == stream_events.inversion_witnesses(oracle)


@MANY
@given(SEEDS, contracts)
@example(
    seed=1628904, contract=EXACTLY_ONCE
)  # One partition ends, and rows that name none come as they were asked for.
def test_duplicate_events_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = damaged(seed, contract)
    assume(defect(deliveries_of(stream[0]), contract) is None)
    ruling, oracle = duplicate_events(view_of(*stream, contract)), Oracle(*stream, contract)
    found = dict(zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True))
    assert found == stream_events.duplicates(oracle)
    assert ruling.witnesses == stream_events.duplicate_witnesses(oracle)


@MANY
@given(SEEDS, contracts)
def test_phantoms_and_wrong_values_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = damaged(seed, contract)
    assume(defect(deliveries_of(stream[0]), contract) is None)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    phantoms = phantom_events(view)
    expected = stream_events.phantoms(oracle)
    assert phantoms.watermark.tolist() == list(expected)
    for mark, write in zip(phantoms.watermark.tolist(), phantoms.write.tolist(), strict=True):
        assert oracle.source[write].op in expected[mark] if write >= 0 else not expected[mark]
    assert phantoms.witnesses == stream_events.phantom_witnesses(oracle)
    wrong = wrong_values(view)
    assert (set(wrong.watermark.tolist()), wrong.witnesses) == stream_events.wrong_values(oracle)


@MANY
@given(SEEDS, contracts)
def test_a_correct_stream_has_no_event_too_many_or_out_of_order(seed: int, contract: StreamContract) -> None:
    view = view_of(*correct(seed, contract), contract)
    rulings = (order_inversions(view), duplicate_events(view), phantom_events(view), wrong_values(view))
    assert [ruling.watermark.tolist() for ruling in rulings] == [[]] * len(rulings)
