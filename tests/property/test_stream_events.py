"""The rules about single events agree with their slow twins on random small streams, and accuse no correct one."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import assume, event, example, given
from msgspec import structs

from checkers.columns.images import IMAGES, Images
from checkers.history.around import NOTHING_AROUND
from checkers.streams.rules.events.before_mismatch import before_mismatches
from checkers.streams.rules.events.duplicate_event import confirmed_again, duplicate_events, repetitions
from checkers.streams.rules.events.early_event import early_events
from checkers.streams.rules.events.order_inversion import order_inversions
from checkers.streams.rules.events.phantom_event import phantom_events
from checkers.streams.rules.events.wrong_value import wrong_values
from checkers.streams.view import defect
from harness.core.columns import NEVER, OPEN, ROW
from harness.core.draw import Draw
from harness.core.promises import StreamContract
from harness.record.formats.parquet.names import json_text
from harness.record.formats.streams.origins import write_images
from tests.oracles import before_images, stream_events
from tests.oracles.streams import Oracle
from tests.worlds.streams.acknowledging import acknowledging
from tests.worlds.streams.cases import beside
from tests.worlds.streams.drawn import MANY, SEEDS, broken, contracts, view_of
from tests.worlds.streams.generator import correct, damaged
from tests.worlds.streams.language import Event, deliveries_of

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

ANSWERED: dict[str, object] = {"delivery": "at-least-once", "resumes_behind_checkpoint": True}


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


def acknowledged(seed: int, log: list[Event]) -> list[Event]:
    """The log with checkpoints behind some of its events, and without some positions with which sessions open."""
    draw = Draw(seed).stream("opened")
    return [
        replace(each, position=NEVER) if each.kind == OPEN and draw.chance(1, 2) else each
        for each in acknowledging(seed, log)
    ]


@MANY
@given(SEEDS, contracts.map(lambda each: structs.replace(each, **ANSWERED)))
def test_what_comes_again_though_it_was_confirmed_is_that_of_the_oracle(seed: int, contract: StreamContract) -> None:
    log, source = broken(seed | 1, contract, acknowledged)
    ruling, oracle = confirmed_again(view_of(log, source, contract)), Oracle(log, source, contract)
    found = dict(zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True))
    assert found == stream_events.confirmed_again(oracle)
    assert ruling.witnesses == stream_events.confirmed_witnesses(oracle)
    event(f"{min(2, len(found))} found")
    both = repetitions(view_of(log, source, contract))
    assert both.watermark.tolist() == sorted({*found, *stream_events.duplicates(oracle)})


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


@MANY
@given(SEEDS, contracts)
def test_early_events_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    log, source = damaged(seed, contract)
    assume(defect(deliveries_of(log), contract) is None)
    draw = Draw(seed).stream("moved")
    source = [replace(each, invoke_seq=draw.between(90, 110 + len(log))) for each in source]
    ruling = early_events(view_of(log, source, contract))
    found = dict(zip(ruling.watermark.tolist(), (source[write] for write in ruling.write.tolist()), strict=True))
    assert found == stream_events.early(Oracle(log, source, contract))


@MANY
@given(SEEDS, contracts)
def test_before_mismatches_are_those_of_the_oracle(seed: int, contract: StreamContract) -> None:
    log, source = stream = damaged(seed, contract)
    assume(defect(deliveries_of(log), contract) is None)
    draw = Draw(seed).stream("images")
    values: dict[int, list[int]] = {}
    images: dict[int, int] = {}
    for place, each in enumerate(log):
        known = values.setdefault(each.key, [0])
        if each.kind == ROW and draw.chance(4, 5):
            images[place] = known[-1] if draw.chance(3, 4) else draw.choice(known)
        known.append(each.value)
    with tempfile.TemporaryDirectory() as folder:
        places = 100 + np.array(list(images), np.int64)
        is_value = np.array([image != NEVER and draw.chance(1, 2) for image in images.values()], np.bool_)
        values_of_rows = np.where(is_value, np.array([*images.values()], np.int64), NEVER)
        others = [
            json_text(image) for image, named in zip(images.values(), is_value.tolist(), strict=True) if not named
        ]
        write_images(Path(folder) / IMAGES, places, values_of_rows, pa.array(others, pa.large_string()))
        around = structs.replace(NOTHING_AROUND, images=Images(Path(folder)))
        ruling = before_mismatches(beside(view_of(log, source, contract), around))
    found = dict(zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True))
    assert (found, ruling.witnesses) == before_images.before_mismatches(Oracle(*stream, contract), images)
