"""The rules about logs and their positions agree with their slow twins on random small streams."""

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from checkers.history.around import NOTHING_AROUND, Issued
from checkers.streams.catalogue import RULES
from checkers.streams.rules.logs.real_time_order import Placed, real_time_order
from checkers.streams.rules.logs.rewritten_offset import rewritten_offsets
from checkers.streams.rules.logs.zombie import zombie_events
from checkers.streams.rules.watermarks.watermark_above_partitions import watermarks_above_partitions
from checkers.streams.rules.watermarks.watermark_from_future import watermarks_from_future
from checkers.streams.task import judged
from harness.core.columns import INFO, NEVER
from harness.core.promises import StreamContract
from tests.amount import count
from tests.oracles import stream_logs
from tests.oracles.streams import Oracle
from tests.worlds.streams.cases import LOG, beside, in_blocks_of
from tests.worlds.streams.drawn import SEEDS, broken, contracts, view_of
from tests.worlds.streams.generator import correct, damaged
from tests.worlds.streams.language import Write, deliveries_of, source_of
from tests.worlds.streams.spoiled_logs import spoiled

MANY = settings(max_examples=count(60))
SECOND = 1_000_000_000


@MANY
@given(SEEDS, contracts, st.sampled_from([None, None, None, 0, -SECOND, 3 * SECOND]), st.booleans())
def test_watermarks_from_the_future_are_those_of_the_oracle(
    seed: int, contract: StreamContract, error_ns: int | None, has_readers: bool
) -> None:
    changes = {"follows_clock": error_ns is not None, "clock_error_ns": error_ns, "wm_idle": "rests"}
    contract = msgspec.structs.replace(contract, **changes)
    log, source = broken(seed, contract, spoiled)
    readers = source[-1:] if has_readers else []  # Let the last one be told as an operation that wrote nothing.
    readers_of = Issued(
        invoke_seq=np.array([w.invoke_seq for w in readers], np.int64),
        complete_seq=np.array([NEVER if w.outcome == INFO else w.complete_seq for w in readers], np.int64),
        position=np.array([w.position for w in readers], np.int64),
    )
    view = view_of(log, source[: len(source) - len(readers)], contract)
    ruling = watermarks_from_future(beside(view, replace(NOTHING_AROUND, readers=readers_of)))
    assert (set(ruling.watermark.tolist()), ruling.witnesses) == stream_logs.from_future(Oracle(log, source, contract))
    for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True):
        shown = source[write] if write >= 0 else None
        assert shown is None or (shown.position < log[mark].position and shown.invoke_seq < 100 + mark)


@MANY
@given(SEEDS, contracts)
def test_watermarks_above_partitions_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    contract = msgspec.structs.replace(contract, is_whole_least=True, wm_idle="moves", wm_scope="session")
    stream = broken(seed, contract, spoiled)
    ruling = watermarks_above_partitions(view_of(*stream, contract))
    expected, witnesses = stream_logs.above_partitions(Oracle(*stream, contract))
    found = dict(zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True))
    assert found.keys() == expected.keys()
    assert all(row in expected[mark] for mark, row in found.items())
    assert ruling.witnesses == witnesses


@MANY
@given(SEEDS, contracts)
def test_zombies_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    contract = msgspec.structs.replace(contract, epochs="owners")
    stream = broken(seed, contract, spoiled)
    ruling = zombie_events(view_of(*stream, contract))
    assert (set(ruling.watermark.tolist()), ruling.witnesses) == stream_logs.zombies(Oracle(*stream, contract))
    log = stream[0]
    for mark, row in zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True):
        assert log[row].epoch > log[mark].epoch
        assert log[row].position < log[mark].position


@MANY
@given(SEEDS, contracts)
def test_rewritten_offsets_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    contract = msgspec.structs.replace(contract, events_at_position="one")
    stream = broken(seed, contract, spoiled)
    ruling = rewritten_offsets(view_of(*stream, contract))
    found = dict(zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True))
    assert (found, ruling.witnesses) == stream_logs.rewritten(Oracle(*stream, contract))


@MANY
@given(SEEDS, contracts)
def test_positions_against_real_time_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    contract = msgspec.structs.replace(contract, realtime="follows", is_position_global=True)
    _, source = broken(seed, contract, spoiled)
    found = real_time_order(placed_of(source), contract)
    with in_blocks_of(1 + seed % 5):
        assert real_time_order(placed_of(source), contract) == found
    is_sole = contract.is_position_unique and contract.atomic_unit == "transaction" and contract.has_noop_events
    expected = stream_logs.reversals(source, is_sole=is_sole)
    assert (found.first.count if found.first else 0) == len(expected)
    assert found.first is None or found.first.before in expected[found.first.op]


@MANY
@given(SEEDS, contracts)
def test_a_correct_source_obeys_real_time(seed: int, contract: StreamContract) -> None:
    contract = msgspec.structs.replace(contract, realtime="follows", is_position_global=True)
    _, source = correct(seed, contract)
    assert real_time_order(placed_of(source), contract).first is None


def placed_of(source: list[Write]) -> Placed:
    """The operations of known position; each is of a process of its own."""
    ops = {w.op: w for w in source if w.position != NEVER}

    def column(numbers: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.array(numbers, np.int64)

    return Placed(
        op=column(list(ops)),
        process=column(list(ops)),
        invoke_seq=column([w.invoke_seq for w in ops.values()]),
        complete_seq=column([NEVER if w.outcome == INFO else w.complete_seq for w in ops.values()]),
        position=column([w.position for w in ops.values()]),
    )


def test_every_rule_about_logs_is_broken_and_witnessed_by_some_damage() -> None:
    contract = StreamContract(closed="<=", cut="position", position="offset", wm_scope="session", epochs="owners")
    variants = (
        msgspec.structs.replace(contract, wm_idle="rests", realtime="follows", events_at_position="one"),
        msgspec.structs.replace(contract, is_whole_least=True),
    )
    broken, witnessed = dict.fromkeys(RULES, 0), dict.fromkeys(RULES, 0)
    for seed in range(200):
        for variant in variants:
            log, source = damaged(seed, variant)
            if log:
                log = spoiled(seed, log)
                outcome = judged(LOG, deliveries_of(log), source_of(source), variant)
                for example in outcome.examples:
                    broken[example.anomaly] += 1
                for name, count in outcome.witnesses.items():
                    witnessed[name] += count > 0
    names = ("watermark-from-future", "watermark-above-partitions", "rewritten-offset", "zombie")
    assert [name for name in names if broken[name] < 3 or witnessed[name] < 3] == []
