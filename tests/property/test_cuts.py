"""Cuts and freshness against their slow twins, on random runs of a store that commits in epochs."""

from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkers.engine.protocol import Context
from checkers.state import freshness
from checkers.transactions.acts import Acts, read_acts
from clusters.ndb.checks import cuts, epochs
from harness.core.promises import Bounds
from harness.core.record import Complete, Evidence, MicroOp
from harness.record.formats.parquet.parquet import write_history
from tests.amount import FIRST_SEED, count
from tests.oracles import epochs as oracle
from tests.worlds.epoch_cases import ENGINE
from tests.worlds.epoch_histories import BITS, records

seeds = st.integers(0, 2**48)
often = settings(
    max_examples=count(30), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def acts(folder: Path, evidence: list[Evidence]) -> Acts:
    write_history(evidence, folder / "history")
    return read_acts(folder / "history")


def spoiled(draw: Random, evidence: list[Evidence]) -> list[Evidence]:
    """The same records with some other epochs, and some reads that are cut short or odd."""
    return [_spoiled(draw, each) if isinstance(each, Complete) and draw.random() < 0.2 else each for each in evidence]


def _spoiled(draw: Random, record: Complete) -> Complete:
    if draw.random() < 0.5 and record.commit_ts is not None:
        epoch = max(1, record.commit_ts + draw.randint(-4, 4))
        return msgspec.structs.replace(record, epoch=epoch, commit_ts=epoch)
    return msgspec.structs.replace(record, mops=tuple(_odd(draw, mop) for mop in record.mops) if record.mops else None)


def _odd(draw: Random, mop: MicroOp) -> MicroOp:
    if not isinstance(mop.value, list) or not mop.value or draw.random() < 0.5:
        return mop
    seen = mop.value[: draw.randint(0, len(mop.value))]
    return msgspec.structs.replace(mop, value=seen if draw.random() < 0.7 else [*seen, 9000 + draw.randrange(50)])


@often
@given(seed=seeds)
def test_the_kernels_agree_with_their_twins(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    evidence = spoiled(draw, records(draw, steps=draw.choice((30, 90)), lag=draw.choice((0, 1, 2))))
    known = acts(tmp_path, evidence)
    worst = {edge.kind: _fall(known, edge) for edge in cuts.closure(known).broken}
    assert worst == oracle.broken(evidence)
    found = freshness.staleness(known)
    assert set(found.ops.tolist()) == oracle.stale(evidence)
    assert (found.example is None) == (not len(found.ops))


def _fall(known: Acts, edge: cuts.Broken) -> int:
    epoch = dict(zip(known.writers.index.tolist(), known.writers.epoch.tolist(), strict=True))
    return int(epoch[edge.before] - epoch[edge.after])


@often
@given(seed=seeds)
def test_a_correct_store_raises_nothing(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    write_history(records(draw), tmp_path / "history")
    bounds = Bounds(saved_bits=BITS)
    judgements = (
        cuts.check(tmp_path / "history", Context(engine=ENGINE, bounds=bounds)),
        freshness.check(tmp_path / "history", Context(engine=ENGINE)),
        epochs.check(tmp_path / "history", Context(engine=ENGINE, bounds=bounds)),
    )
    assert [finding for judgement in judgements for finding in judgement.findings] == []
    assert [judgement.unknown for judgement in judgements] == [{}, {}, {}]


@pytest.mark.parametrize(("lock", "is_legal"), [("committed", True), ("exclusive", False)])
def test_committed_reads_run_against_the_order_of_epochs_and_locked_ones_do_not(
    tmp_path: Path, lock: str, is_legal: bool
) -> None:
    backward = 0
    for seed in range(FIRST_SEED, FIRST_SEED + count(25)):
        evidence = records(Random(seed), lock=lock, steps=200)
        backward += sum(kind == "rw" for kind in oracle.broken(evidence, is_any_lock=True))
        write_history(evidence, tmp_path / str(seed))
        judgement = cuts.check(tmp_path / str(seed), Context(engine=ENGINE, bounds=Bounds(saved_bits=BITS)))
        assert judgement.findings == ()
    assert (backward > 0) == is_legal


def test_the_same_edges_under_lock_are_findings(tmp_path: Path) -> None:
    found = 0
    for seed in range(FIRST_SEED, FIRST_SEED + count(25)):
        result = [_under_lock(each) for each in records(Random(seed), lock="committed", steps=200)]
        kinds = {edge.kind for edge in cuts.closure(acts(tmp_path / str(seed), result)).broken}
        assert kinds == set(oracle.broken(result))
        found += "rw" in kinds
    assert found > 0


def _under_lock(record: Evidence) -> Evidence:
    """The same record, with reads that claim to have held a lock."""
    mops = getattr(record, "mops", None)
    if mops is None:
        return record
    locked = tuple(msgspec.structs.replace(mop, lock="shared") if mop.f == "r" else mop for mop in mops)
    return msgspec.structs.replace(record, mops=locked)
