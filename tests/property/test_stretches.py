"""Generations that are judged at once are judged as each by itself: findings, witnesses, facts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from checkers.catalogue import CHECKS
from checkers.graph.edges import Inference
from checkers.history.generation_files import Part, parts, write_part
from checkers.history.generations import restarts
from checkers.history.registers import Initial, Order
from checkers.history.stretches import Weights, write_stretches
from checkers.history.transactions import chunks, read_chunk, to_operations
from checkers.transactions import inferred
from checkers.transactions.partition import Share, infer
from checkers.watermarks import components
from clusters.ndb.checks import CHECKS as NDB
from harness.core.columns import FAIL, Int64s
from harness.core.promises import Promise, StreamContract
from harness.core.record import Complete, Evidence, State, StreamEvent
from harness.core.verdict import Judgement
from harness.judging import generations
from harness.judging.checks import chosen, judgement_of
from harness.record.formats.parquet.parquet import write_history
from tests.amount import FIRST_SEED, count
from tests.worlds.contexts import EPOCHS, by_check, context
from tests.worlds.epoch_histories import BITS, EpochStore

CONTRACT = StreamContract(
    closed="<=",
    cut="position",
    position="epoch",
    order_key="key",
    delivery="exactly-once",
    replay="session",
    atomic_unit="transaction",
    versions="every",
    is_position_global=True,
    identity="position+key+value",
    wm_scope="session",
    has_gap_marker=True,
)
CUT = Promise(
    id="4", text="", source="", forbids=("torn-watermark", "G0-watermark", "G1c-watermark", "split-watermark")
)
SUBSCRIBERS = ("s1", "s2")


def streamed(evidence: list[Evidence], draw: Random, *, lost: float) -> Iterator[Evidence]:
    """The records, and two streams of what was committed: a session for each generation, without some events."""
    session, epoch = 1, -1
    yield from (StreamEvent(0, who, 1, 0, "open", None, None, None, 0, None, 0, None) for who in SUBSCRIBERS)
    for each in evidence:
        yield each
        if isinstance(each, State):
            session, epoch = session + 1, -1
            for who in SUBSCRIBERS:
                yield StreamEvent(0, who, session - 1, 0, "close", None, None, None, None, None, None, None)
                yield StreamEvent(0, who, session, 0, "open", None, None, None, None, None, None, None)
        if isinstance(each, Complete) and each.commit_ts is not None:
            if epoch not in (-1, each.commit_ts):
                for who in SUBSCRIBERS:
                    yield StreamEvent(0, who, session, 0, "watermark", None, None, None, epoch, None, epoch, None)
            epoch = each.commit_ts
            for mop in each.mops or ():
                for who in SUBSCRIBERS:
                    if mop.f == "append" and draw.random() >= lost:
                        key, value = mop.key, mop.value
                        yield StreamEvent(0, who, session, 0, "row", None, key, value, epoch, None, epoch, None)


def history_of(seed: int, folder: Path, *, steps: int = 150, restart_count: int = 4) -> Path:
    """A random history: some lag, so that cuts break, or lose events."""
    draw = Random(seed)
    lag, lost = draw.choice((0, 0, 1)), draw.choice((0, 0, 0.1))
    result = EpochStore(draw, lag=lag, is_reusing=draw.random() < 0.2).run(steps, restarts=restart_count, keys=8)
    write_history(list(streamed(result, draw, lost=lost)), folder / "history")
    return folder / "history"


def judged(history: Path, many: int, monkeypatch: pytest.MonkeyPatch, *, only: str = "") -> dict[str, Judgement]:
    monkeypatch.setattr(generations, "MANY", many)
    what = context(*EPOCHS, CUT, contract=CONTRACT)
    with generations.generations(history, what) as known:
        checks = [check for check in chosen(what, (*CHECKS, *NDB)) if check.of_stretches and only in (check.name, "")]
        return {check.name: judgement_of(check, known) for check in checks}


def test_generations_at_once_are_judged_as_each_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean, broken = set[str](), set[str]()
    for seed in range(FIRST_SEED, FIRST_SEED + count(8)):
        history = history_of(seed, tmp_path / str(seed))
        together, apart = (judged(history, many, monkeypatch) for many in (0, 1000))
        assert together == apart, f"seed {seed}"
        broken |= {name for name, each in apart.items() if each.findings}
        clean |= {name for name, each in apart.items() if not each.findings and any(each.witnesses.values())}
    assert clean >= {"serializability", "serializability-locked", "watermark-graph", "freshness", "cuts"}
    assert broken >= {"watermark-graph", "cuts"}


def test_only_cycles_whose_operations_share_a_generation_have_each_judged_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, spans_of, name = generations.Generations._place, components._spans, "watermark-graph"
    by_itself = set[int]()

    def noted(known: generations.Generations, part: Part) -> Path:
        by_itself.add(part.generation)
        return place(known, part)

    def of_all(*arguments: Any) -> tuple[Int64s, Int64s]:
        first, last = spans_of(*arguments)
        return np.zeros_like(first), np.full_like(last, 4)

    monkeypatch.setattr(generations.Generations, "_place", noted)
    history = history_of(20005, tmp_path)  # Its only cycles have operations that no generation includes together.
    judgement = judged(history, 0, monkeypatch, only=name)
    assert not judgement[name].findings
    assert by_itself == {4}
    monkeypatch.setattr(components, "_spans", of_all)
    assert judged(history, 0, monkeypatch, only=name) == judgement
    assert by_itself == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("restart_count", [0, 4])
def test_the_checks_of_transactions_and_of_watermarks_share_the_dependencies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restart_count: int
) -> None:
    calls = list[object]()

    def counted(parts: Sequence[Share], *, order: Order, initial: Initial, weights: Weights) -> Inference:
        calls.append(parts)
        return infer(parts, order=order, initial=initial, weights=weights)

    monkeypatch.setattr(inferred, "infer", counted)
    history = history_of(1, tmp_path, restart_count=restart_count)
    found = by_check(history, context(*EPOCHS, CUT, contract=CONTRACT))
    assert found["watermark-graph"].witnesses["G1c-watermark"] > 0
    assert found["serializability"].witnesses["G1c"] > 0
    judged = 2 if restart_count else 1  # The stretches and the last generation, or the history as it is.
    assert len(calls) == judged * 2  # All reads, and those under lock.


def operations_by_key(folder: Path) -> dict[int, set[tuple[int, int]]]:
    """The operations of each key that has others than failed ones, with their outcomes."""
    found: dict[int, set[tuple[int, int]]] = {}
    for chunk in chunks(folder):
        for operation in to_operations(read_chunk(chunk)):
            for mop in operation.mops:
                found.setdefault(mop.key, set()).add((operation.index, operation.outcome))
    return {key: each for key, each in found.items() if any(outcome != FAIL for _, outcome in each)}


def test_each_stretch_has_the_operations_of_its_key_in_its_generations(tmp_path: Path) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + count(6)):
        history, folder = history_of(seed, tmp_path / str(seed)), tmp_path / f"{seed}-stretches"
        folder.mkdir()
        known = restarts(history)
        stretches = write_stretches(history, folder, known, saved_bits=BITS)
        assert stretches is not None
        of_stretch = operations_by_key(stretches.folder)
        for part in parts(known, BITS)[:-1]:
            by_itself = tmp_path / f"{seed}-{part.generation}"
            by_itself.mkdir()
            write_part(history, by_itself, part)
            assert sorted(map(sorted, operations_by_key(by_itself).values())) == sorted(
                sorted(operations)
                for stretch, operations in of_stretch.items()
                if stretches.first[stretch] <= part.generation <= stretches.last[stretch]
            ), f"seed {seed}"
