"""The rules about starts, snapshots, tails and ends agree with their slow twins, and accuse no correct stream."""

import msgspec
import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from checkers.history.around import NOTHING_AROUND
from checkers.streams.catalogue import RULES
from checkers.streams.rules.sessions.event_after_end import events_after_end
from checkers.streams.rules.sessions.hand_over_hole import hand_over_holes
from checkers.streams.rules.sessions.holes import holes
from checkers.streams.rules.sessions.joins import join_holes
from checkers.streams.rules.sessions.lost_tail import lost_tails
from checkers.streams.rules.sessions.missing_event import lost_events
from checkers.streams.rules.sessions.resume_hole import left_out
from checkers.streams.rules.sessions.skipped_position import skipped_positions
from checkers.streams.task import judged
from checkers.streams.view import StreamView
from harness.core.promises import StreamContract
from tests.amount import count
from tests.oracles import stream_losses, stream_sessions
from tests.oracles.streams import Identity, Oracle
from tests.worlds.streams.cases import LOG, beside
from tests.worlds.streams.drawn import SEEDS, broken, contracts, view_of
from tests.worlds.streams.generator import correct, damaged
from tests.worlds.streams.language import deliveries_of, source_of
from tests.worlds.streams.spoiled_losses import lossy
from tests.worlds.streams.spoiled_sessions import spoiled

MANY = settings(max_examples=count(60))


@MANY
@given(SEEDS, contracts)
def test_holes_behind_a_start_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = broken(seed, contract, spoiled)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    found = holes(view)
    result = {
        (oracle.session(oracle.log[mark]), oracle.source[write]): (mark, row)
        for part in (found.resumes, found.openings, found.backfills)
        for mark, row, write in zip(part.watermark.tolist(), part.row.tolist(), part.write.tolist(), strict=True)
    }
    assert result == stream_sessions.holes(oracle)
    parts = (found.resumes, found.openings, found.backfills)
    assert len(result) == sum(len(part.watermark) for part in parts)
    witnesses = stream_sessions.hole_witnesses(oracle)
    assert tuple(part.witnesses for part in parts) == tuple(map(len, witnesses))


@MANY
@given(SEEDS, contracts)
def test_what_watermarks_and_rows_close_is_missed_as_by_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = broken(2 * seed + 1, contract, lossy)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    ruling = lost_events(view)
    result: dict[tuple[Identity, int], int] = {}
    for mark, place in zip(ruling.watermark.tolist(), np.searchsorted(view.expected, ruling.write), strict=True):
        what = (stream_losses.scope(oracle, oracle.log[mark]), index_of(oracle, view, int(place)))
        result.setdefault(what, mark)
    assert result == stream_losses.lost(oracle)
    assert ruling.witnesses >= bool(result)
    resumed = left_out(view)
    assert {
        (oracle.session(oracle.log[mark]), oracle.source[write])
        for mark, write in zip(resumed.watermark.tolist(), resumed.write.tolist(), strict=True)
    } == set(stream_losses.resume_holes(oracle))


@MANY
@given(SEEDS, contracts)
def test_writes_between_two_sessions_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = broken(2 * seed + 1, contract, lossy)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    ruling = join_holes(view)
    who = [oracle.log[mark].subscriber for mark in ruling.watermark.tolist()]
    places = [index_of(oracle, view, int(place)) for place in np.searchsorted(view.expected, ruling.write)]
    found = dict(zip(zip(who, places, strict=True), ruling.watermark.tolist(), strict=True))
    expected = stream_losses.joins(oracle)
    assert found == expected
    assert ruling.witnesses >= bool(found)


@MANY
@given(SEEDS, contracts, st.sampled_from(["apart", "joined"]))
def test_skipped_positions_are_those_of_the_oracle(seed: int, contract: StreamContract, sessions: str) -> None:
    contract = msgspec.structs.replace(contract, positions="dense", sessions=sessions)
    stream = broken(2 * seed + 1, contract, lossy)
    ruling, oracle = skipped_positions(view_of(*stream, contract)), Oracle(*stream, contract)
    found = set()
    for mark, below in zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True):
        event = oracle.log[mark]
        own = (event.subscriber, oracle.home(event))
        low, high = stream_losses.done(oracle, below), stream_losses.done(oracle, mark)
        assert low < high
        found |= {(own, p) for p in {*range(low + 1, high + 1)} - stream_losses.seen(oracle, own)}
    assert found == stream_losses.skipped(oracle)
    assert ruling.witnesses >= bool(found)


def index_of(oracle: Oracle, view: StreamView, place: int) -> int:
    """The place in the oracle's writes of that expected write."""
    return oracle.owed.index(oracle.source[int(view.expected[place])])


@MANY
@given(SEEDS, contracts)
def test_faults_of_snapshots_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    stream = broken(seed, contract, spoiled)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    ruling = hand_over_holes(view)
    expected = stream_sessions.hand_over(oracle)
    keys = [
        oracle.source[write].key if write >= 0 else oracle.log[mark].key
        for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True)
    ]
    sessions = [oracle.session(oracle.log[mark]) for mark in ruling.watermark.tolist()]
    result = dict(zip(zip(sessions, keys, strict=True), ruling.watermark.tolist(), strict=True))
    assert result == {who: mark for who, (mark, _) in expected.items()}
    assert ruling.witnesses == stream_sessions.hand_over_witnesses(oracle)


@MANY
@given(SEEDS, contracts, st.sampled_from([-1, 104, 110]), st.sampled_from([-1, 103]))
def test_lost_tails_are_those_of_the_oracle(seed: int, contract: StreamContract, settled: int, healed: int) -> None:
    stream = broken(seed, contract, spoiled)
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    around = replace(NOTHING_AROUND, settled_seq=settled, healed_seq=healed)
    ruling = lost_tails(beside(view, around))
    result = {
        (oracle.log[mark].subscriber, oracle.source[write])
        for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True)
    }
    assert len(result) == len(ruling.write)
    assert (result, ruling.witnesses) == stream_losses.tails(oracle, settled, healed)


@MANY
@given(SEEDS, contracts)
def test_what_comes_after_an_end_is_what_the_oracle_finds(seed: int, contract: StreamContract) -> None:
    stream = broken(seed, contract, spoiled)
    ruling = events_after_end(view_of(*stream, contract))
    found = dict(zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True))
    assert found == stream_sessions.after_end(Oracle(*stream, contract))
    assert ruling.witnesses >= bool(found)


@MANY
@given(SEEDS, contracts)
def test_no_rule_at_all_accuses_a_correct_stream(seed: int, contract: StreamContract) -> None:
    log, source = correct(seed, contract)
    assume(log)
    outcome = judged(LOG, deliveries_of(log), source_of(source), contract)
    assert [example.anomaly for example in outcome.examples] == []


def test_every_rule_about_sessions_is_broken_and_witnessed_by_some_damage() -> None:
    contract = StreamContract(closed="<=", cut="position", position="offset", wm_scope="subscriber")
    contract = msgspec.structs.replace(contract, tail="settled", backfill="whole", atomic_unit="none")
    broken, witnessed = dict.fromkeys(RULES, 0), dict.fromkeys(RULES, 0)
    for seed in range(250):
        log, source = damaged(seed, contract)
        if log:
            outcome = judged(LOG, deliveries_of(spoiled(seed, log)), source_of(source), contract)
            for example in outcome.examples:
                broken[example.anomaly] += 1
            for name, count in outcome.witnesses.items():
                witnessed[name] += count > 0
    names = ("resume-hole", "lost-tail", "hand-over-hole", "event-after-end")
    assert [name for name in names if broken[name] < 3 or witnessed[name] < 20] == []
