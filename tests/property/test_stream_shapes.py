"""The rules about filters, partitions and divergence agree with their slow twins, and accuse no correct stream."""

import msgspec
from hypothesis import assume, example, given, settings

from checkers.streams.rules.events.divergent_duplicate import divergent_duplicates
from checkers.streams.rules.sessions.moved_key import moved_keys
from checkers.streams.rules.sessions.outside_filter import outside_events
from checkers.streams.view import defect
from harness.core.promises import StreamContract
from tests.amount import count
from tests.oracles import stream_shapes
from tests.oracles.streams import Oracle
from tests.worlds.streams.drawn import SEEDS, contracts, view_of
from tests.worlds.streams.generator import correct, damaged
from tests.worlds.streams.language import Event, Write, deliveries_of
from tests.worlds.streams.shapes import moved_about

MANY = settings(max_examples=count(125))
LATER_KEYS = StreamContract(closed="<=", cut="position", position="epoch", identity="position+key+value")


def judged(seed: int, contract: StreamContract) -> tuple[list[Event], list[Write]]:
    log, source = damaged(seed, contract)
    assume(defect(deliveries_of(log), contract) is None)
    return log, source


@MANY
@given(SEEDS, contracts)
@example(seed=1650, contract=LATER_KEYS)  # A session asks for a key after it came.
def test_what_lies_outside_is_what_the_oracle_finds(seed: int, contract: StreamContract) -> None:
    log, source = judged(seed, contract)
    ruling = outside_events(view_of(log, source, contract))
    expected = stream_shapes.outside(Oracle(log, source, contract))
    assert set(ruling.watermark.tolist()) == expected
    assert ruling.witnesses >= bool(expected)  # Whatever was found could have been.


@MANY
@given(SEEDS, contracts)
def test_keys_that_moved_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    log, source = judged(seed, contract)
    log = moved_about(log) if contract.wm_scope != "partition" else log
    ruling, oracle = moved_keys(view_of(log, source, contract)), Oracle(log, source, contract)
    found = dict(zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True))
    assert found == stream_shapes.moved(oracle)
    assert ruling.witnesses == stream_shapes.moved_witnesses(oracle)


@MANY
@given(SEEDS, contracts)
def test_divergent_rows_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    log, source = judged(seed, contract)
    if contract.identity == "position+key+value":
        contract = msgspec.structs.replace(contract, identity="position+key+ordinal")
        assume(defect(deliveries_of(log), contract) is None)
    ruling, oracle = divergent_duplicates(view_of(log, source, contract)), Oracle(log, source, contract)
    found = dict(zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True))
    assert found == stream_shapes.divergent(oracle)
    assert ruling.witnesses >= bool(found)


@MANY
@given(SEEDS, contracts)
def test_a_correct_stream_keeps_to_its_filter_its_partitions_and_its_word(seed: int, contract: StreamContract) -> None:
    view = view_of(*correct(seed, contract), contract)
    rulings = (outside_events(view), moved_keys(view), divergent_duplicates(view))
    assert [ruling.watermark.tolist() for ruling in rulings] == [[]] * 3
