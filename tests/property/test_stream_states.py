"""The rules about states agree with their slow twins on random small streams, and accuse no correct one."""

from collections import Counter

from hypothesis import assume, given

from checkers.history.streams import StreamLog
from checkers.streams.rules.logs.split_view import SPLIT_VIEW, splits, views_of
from checkers.streams.rules.watermarks.silent_gap import silent_gaps
from checkers.streams.rules.watermarks.state_mismatch import state_mismatches
from checkers.streams.task import judged
from checkers.streams.view import defect
from harness.core.promises import StreamContract
from tests.oracles import stream_states
from tests.oracles.streams import Oracle
from tests.worlds.streams.cases import EPOCHS, WATERMARK_RULES, views
from tests.worlds.streams.cases import contract as case_contract
from tests.worlds.streams.drawn import MANY, SEEDS, contracts, view_of
from tests.worlds.streams.generator import correct, damaged
from tests.worlds.streams.language import deliveries_of, source_of


@MANY
@given(SEEDS, contracts)
def test_splits_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = damaged(seed, contract)
    assume(defect(deliveries_of(stream[0]), contract) is None)
    found, witnesses = splits([views_of(view_of(*stream, contract))])
    expected = stream_states.splits(Oracle(*stream, contract))
    what = {(s.one.subscriber, s.other.subscriber): (s.count, s.one.position) for s in found}
    assert (what, witnesses) == expected


@MANY
@given(SEEDS, contracts)
def test_silent_gaps_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = damaged(seed, contract)
    assume(defect(deliveries_of(stream[0]), contract) is None)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    ruling = silent_gaps(view)
    found = {
        (oracle.session(oracle.log[mark]), oracle.source[write].position): mark
        for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True)
    }
    assert len(found) == len(ruling.watermark)
    assert (found, ruling.witnesses) == stream_states.silent_gaps(oracle)


@MANY
@given(SEEDS, contracts)
def test_mismatches_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = damaged(seed, contract)
    assume(defect(deliveries_of(stream[0]), contract) is None)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    ruling = state_mismatches(view)
    found = {
        (oracle.session(oracle.log[mark]), oracle.source[write].key): mark
        for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True)
    }
    assert len(found) == len(ruling.watermark)
    assert (found, ruling.witnesses) == stream_states.mismatches(oracle)
    for row, write in zip(ruling.row.tolist(), ruling.write.tolist(), strict=True):
        built = oracle.shown(oracle.log[row])
        assert built is not None
        assert built.version < oracle.source[write].version


@MANY
@given(SEEDS, contracts)
def test_sessions_of_logs_apart_differ_as_those_of_one_log(seed: int, contract: StreamContract) -> None:
    log, source = damaged(seed, contract)
    assume(defect(deliveries_of(log), contract) is None)
    together = splits([views_of(view_of(log, source, contract))])
    logs = [[event for event in log if event.subscriber == each] for each in (0, 1)]
    assert splits([views_of(view_of(one, source, contract)) for one in logs if one]) == together


@MANY
@given(SEEDS, contracts)
def test_a_correct_stream_agrees_with_itself_and_its_source(seed: int, contract: StreamContract) -> None:
    view = view_of(*correct(seed, contract), contract)
    assert splits([views_of(view)])[0] == []
    rulings = (silent_gaps(view), state_mismatches(view))
    assert [ruling.watermark.tolist() for ruling in rulings] == [[], []]


def test_rules_of_every_stream_are_broken_and_witnessed_by_some_damage() -> None:
    contract = case_contract(**EPOCHS)
    broken, witnessed = Counter[str](), Counter[str]()
    for seed in range(500):  # Always the same: of 500 seeds from 1 to 5 split a view.
        log, source = damaged(seed, contract)
        if log:
            names = ("s0", "s1")
            outcome = judged(StreamLog("", names, names, ()), deliveries_of(log), source_of(source), contract)
            broken.update({example.anomaly for example in outcome.examples})
            witnessed.update(name for name, count in outcome.witnesses.items() if count)
            found, count = splits(views(outcome))
            broken[SPLIT_VIEW.name] += bool(found)
            witnessed[SPLIT_VIEW.name] += bool(count)
    # The rules about shapes, sessions and logs have files of their own.
    events = ("order-inversion", "duplicate-event", "phantom-event", "wrong-value")
    others = (*WATERMARK_RULES, *events, "silent-gap", "state-mismatch", "split-view", "outside-filter")
    assert [name for name in others if broken[name] < 3] == []
    assert [name for name in others if witnessed[name] < 20] == []
