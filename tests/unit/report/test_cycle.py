"""Drawings of cycles through watermarks: whatever the node is called, it has a box that says what it is."""

from typing import Any

import pytest

from checkers.history.names import Forms
from harness.core.record import Invoke, MicroOp
from harness.core.verdict import Step
from harness.report.pictures.cycle import NAME_MAX, cycle_drawing


def through(name: str, relation: Any = "watermark") -> tuple[Step, Step]:
    """A transaction, then that, and back."""
    there = Step(source="T1", target=name, relation="wr", sentence="it contains it")
    return there, Step(source=name, target="T1", relation=relation, sentence="it lacks it")


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("s1@120", "s1 at epoch 30/0"),
        ("s1/3@120", "s1/3 at epoch 30/0"),
        ("W s1/327", "s1 at epoch 81/3"),
        ("Tim@5", "Tim at epoch 1/1"),
        ("T9@7", "T9 at epoch 1/3"),
        ("checkpoint", "checkpoint"),
        ("T", "T"),
    ],
)
def test_a_node_that_is_no_transaction_is_a_watermark(name: str, called: str) -> None:
    drawing = cycle_drawing(through(name), {}, Forms(place_pattern="epoch {}", notation="epoch", low_bits=2))
    assert drawing is not None
    transaction, watermark = drawing.boxes
    assert (transaction.name, transaction.is_watermark) == ("T1", False)
    assert (watermark.name, watermark.is_watermark) == (called, True)
    assert watermark.lines == ("announced as complete",)


def test_a_long_name_stays_in_its_box() -> None:
    drawing = cycle_drawing(through("subscriber-in-a-far-away-place@120"), {})
    assert drawing is not None
    assert drawing.boxes[1].name == "subscriber-in-a-far-away-plac…"
    assert len(drawing.boxes[1].name) == NAME_MAX


def test_a_relation_without_a_meaning_of_its_own_is_drawn_too() -> None:
    drawing = cycle_drawing(through("s1@120", "chain"), {})
    assert drawing is not None
    assert dict(drawing.legend) == {"wr": "was read by", "chain": "comes before"}


@pytest.mark.parametrize(
    ("size", "lines"),
    [
        (4, ("append 0 to x", "append 1 to x", "append 2 to x", "append 3 to x")),
        (5, ("append 0 to x", "append 1 to x", "append 2 to x", "and 2 more")),
    ],
)
def test_one_step_is_never_left_out_for_the_line_that_says_so(size: int, lines: tuple[str, ...]) -> None:
    invoke = Invoke(1, 0, 0, 0, "txn", None, tuple(MicroOp("append", "x", number) for number in range(size)))
    drawing = cycle_drawing(through("s1@120"), {1: (invoke, None)})
    assert drawing is not None
    assert drawing.boxes[0].lines == lines
