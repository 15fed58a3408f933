"""The stream rules agree with their slow twins on random small streams, and accuse no correct one."""

from hypothesis import assume, given

from checkers.streams.closings import missing_events
from checkers.streams.rules.watermarks.late_event import late_events
from checkers.streams.rules.watermarks.torn_unit import torn_units
from checkers.streams.rules.watermarks.watermark_regress import regressions
from checkers.streams.view import defect
from harness.core.promises import StreamContract
from tests.oracles.streams import Oracle
from tests.worlds.streams.drawn import MANY, SEEDS, contracts, view_of
from tests.worlds.streams.generator import correct, damaged
from tests.worlds.streams.language import deliveries_of


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
