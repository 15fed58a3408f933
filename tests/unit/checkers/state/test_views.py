"""Views against their inputs: single cases, legal oddities, and agreement with a slow twin."""

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from checkers.engine.protocol import Context
from checkers.state import views
from checkers.state.views import WRONG
from harness.core.promises import Bounds, View
from harness.core.record import Complete, Evidence, Invoke, Outcome, StreamEvent
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.oracles.views import Change, is_right, rows_of
from tests.worlds.epoch_cases import ENGINE

FIRST = int(os.environ.get("SEAMARK_FUZZ_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEAMARK_FUZZ_COUNT", "60")))
SUMS = View(name="v", operator="sum", inputs=("a",))
TOPS = View(name="v", operator="top-1", inputs=("a",), value=0)
KINDS = (
    SUMS,
    View(name="v", operator="join", inputs=("a", "b")),
    View(name="v", operator="distinct", inputs=("b",)),
    View(name="v", operator="rows", inputs=("a",)),
    View(name="v", operator="top-1", inputs=("a",)),
)
PAIRED = (
    TOPS,
    View(name="v", operator="top-1", inputs=("a",), value=0, order=1),
    View(name="v", operator="sum", inputs=("a",), key=0, value=1),
)


class Story:
    """Changes of collections, and claims about views."""

    def __init__(self) -> None:
        self.records: list[Evidence] = []
        self.number = 0
        self._events = 0

    def op(
        self, f: str, asked: Any, answer: Any, outcome: Outcome = "ok", read_ts: int | None = None,
        commit_ts: int | None = None,
    ) -> None:  # fmt: skip
        index, self.number = self.number, self.number + 1
        self.records.append(Invoke(index, 2 * index, 2 * index, index, f, asked))
        self.records.append(Complete(index, 2 * index + 1, outcome, answer, read_ts=read_ts, commit_ts=commit_ts))

    def change(self, ts: int, *rows: tuple[str, Any, Any, int], outcome: Outcome = "ok") -> None:
        value = [list(row) for row in rows]
        is_ok = outcome == "ok"
        self.op("change", value, value if is_ok else None, outcome, commit_ts=ts if is_ok else None)

    def query(self, ts: int, *rows: tuple[Any, Any]) -> None:
        self.op("query", "v", ["v", [list(row) for row in rows]], read_ts=ts)

    def event(self, span: str, kind: str, ts: int, key: Any = None, row: Any = None, diff: int | None = None) -> None:
        self.records.append(
            StreamEvent(
                2 * self.number, "s1", 1, self._events, kind, span=span, key=key, value=row, position=ts, ordinal=diff
            )
        )
        self._events += 1

    def judged(self, folder: Path, *declared: View) -> Judgement:
        write_history(self.records, folder / "history")
        return views.check(folder / "history", Context(engine=ENGINE, bounds=Bounds(views=declared)))


def test_a_wrong_row_is_found_with_the_input_rows_that_prove_it(tmp_path: Path) -> None:
    story = Story()
    story.change(3, ("a", 1, 5, 1))
    story.change(4, ("a", 1, 2, 1))
    story.query(3, (1, 5))
    story.query(4, (1, 5))
    (finding,) = story.judged(tmp_path, SUMS).findings
    assert (finding.anomaly, finding.ops) == (WRONG, (0, 1, 3))
    assert finding.sentence == (
        "T3 read 5 for key 1 of view v at position 4, where its inputs give 7: a 5 (+1) at 3, a 2 (+1) at 4."
    )


def test_a_row_too_many_and_one_too_few_are_found(tmp_path: Path) -> None:
    story = Story()
    story.change(3, ("a", 1, 5, 1))
    story.query(3)
    story.query(3, (1, 5), (2, 0))
    assert [finding.count for finding in story.judged(tmp_path, SUMS).findings] == [2]


def test_rows_that_were_taken_away_count_no_more(tmp_path: Path) -> None:
    story = Story()
    story.change(3, ("a", 1, 5, 1), ("a", 2, 5, 1))
    story.change(4, ("a", 1, 5, -1))
    story.query(4, (2, 5))
    judgement = story.judged(tmp_path, SUMS)
    assert judgement.findings == ()
    assert judgement.witnesses == {WRONG: 1}


def test_of_rows_that_tie_any_is_right_unless_an_order_is_declared(tmp_path: Path) -> None:
    story = Story()
    story.change(3, ("a", 1, [5, 1], 1), ("a", 1, [5, 2], 1), ("a", 1, [4, 9], 1))
    story.query(3, (1, [5, 1]))
    story.query(3, (1, [5, 2]))
    assert story.judged(tmp_path, TOPS).findings == ()
    (finding,) = story.judged(tmp_path / "ordered", PAIRED[1]).findings
    assert (finding.count, finding.ops[-1]) == (1, 1)


def test_a_key_that_an_unclear_write_may_have_changed_is_undecided_and_others_are_not(tmp_path: Path) -> None:
    story = Story()
    story.change(3, ("a", 1, 5, 1), ("a", 2, 5, 1))
    story.change(0, ("a", 1, 6, 1), outcome="info")
    story.change(0, ("a", 2, 6, 1), outcome="fail")
    story.query(9, (1, 11), (2, 5))
    judgement = story.judged(tmp_path, SUMS)
    assert judgement.findings == ()
    assert judgement.facts == {"undecided-view-rows": 1}
    story.query(9, (1, 11), (2, 11))
    assert len(story.judged(tmp_path / "wrong", SUMS).findings) == 1


def test_a_log_is_compared_at_each_timestamp_below_its_progress(tmp_path: Path) -> None:
    story = Story()
    for ts, row in ((3, 5), (6, 2)):
        story.event("a", "row", ts, 1, row)
    story.event("a", "watermark", 10)
    story.event("v", "row", 3, 1, 5)
    story.event("v", "row", 7, 1, 5, -1)
    story.event("v", "row", 7, 1, 7)
    story.event("v", "watermark", 10)
    (finding,) = story.judged(tmp_path, SUMS).findings
    assert finding.sentence.startswith("s1 was shown 5 for key 1 of view v at position 6, where its inputs give 7")
    assert finding.count == 1


def test_what_the_log_of_an_input_has_not_reached_is_undecided(tmp_path: Path) -> None:
    story = Story()
    story.event("a", "row", 3, 1, 5)
    story.event("a", "watermark", 4)
    story.event("v", "row", 3, 1, 5)
    story.event("v", "row", 4, 1, 5, -1)
    story.event("v", "row", 4, 1, 8)
    story.event("v", "watermark", 10)
    judgement = story.judged(tmp_path, SUMS)
    assert judgement.findings == ()
    assert judgement.facts == {"undecided-view-rows": 1}


def test_a_log_that_resumes_goes_on_where_the_view_was(tmp_path: Path) -> None:
    story = Story()
    story.event("a", "row", 3, 1, 5)
    story.event("a", "row", 6, 2, 4)
    story.event("a", "watermark", 9)
    story.event("v", "open", 5)
    story.event("v", "row", 6, 2, 4)
    story.event("v", "watermark", 9)
    assert story.judged(tmp_path, SUMS).findings == ()


def drawn(seed: int) -> tuple[Story, View, list[Change], list[tuple[int, list[tuple[Any, Any]]]]]:
    """Changes of two collections and answers about a view, a few of them spoiled."""
    dice, story = random.Random(seed), Story()
    view = dice.choice((*KINDS, *PAIRED))
    is_paired = view in PAIRED
    changes: list[Change] = []
    for _ in range(dice.randint(1, 14)):
        ts, name, key = dice.randint(1, 9), dice.choice(("a", "b")), dice.randint(0, 2)
        row: Any = (dice.randint(0, 2), dice.randint(0, 2)) if is_paired else dice.randint(0, 3)
        held = [each for each in changes if each[:2] < (name, ts + 1) and each.collection == name and each.diff > 0]
        gone = [(each.key, each.row) for each in changes if each.collection == name and each.diff < 0]
        free = [each for each in held if (each.key, each.row) not in gone]
        if free and dice.random() < 0.4:
            taken = dice.choice(free)
            changes.append(Change(name, max(ts, taken.ts), taken.key, taken.row, -1))
        else:
            changes.append(Change(name, ts, key, row, 1))
        last = changes[-1]
        shown = list(last.row) if is_paired else last.row
        story.change(last.ts, (last.collection, last.key, shown, last.diff))
    answers = []
    for _ in range(dice.randint(1, 4)):
        ts = dice.randint(0, 10)
        due = rows_of(view, changes, ts)
        rows = [
            (key, row) for key, each in due.items() for row, count in dice.choice(each).items() for _ in range(count)
        ]
        if dice.random() < 0.3 and rows:
            rows.pop(dice.randrange(len(rows)))
        elif dice.random() < 0.2:
            rows.append(dice.choice(rows) if rows else (0, 1))
        answers.append((ts, rows))
        story.query(ts, *((key, list(row) if isinstance(row, tuple) else row) for key, row in rows))
    return story, view, changes, answers


@pytest.mark.parametrize("seed", SEEDS)
def test_it_agrees_with_a_slow_twin(tmp_path: Path, seed: int) -> None:
    story, view, changes, answers = drawn(seed)
    findings = story.judged(tmp_path, view).findings
    wrong = [(ts, rows) for ts, rows in answers if not is_right(view, changes, ts, rows)]
    assert sum(finding.count for finding in findings) >= len(wrong)
    assert bool(findings) == bool(wrong)


def test_the_drawn_cases_are_of_all_kinds_and_some_are_wrong() -> None:
    cases = [drawn(seed) for seed in range(120)]
    wrong: Sequence[View] = [
        view for _, view, changes, answers in cases if not all(is_right(view, changes, *each) for each in answers)
    ]
    assert all(view in wrong for view in (*KINDS, *PAIRED))
    assert len(wrong) < 90


def test_a_log_that_resumes_may_bring_the_updates_at_that_timestamp_again(tmp_path: Path) -> None:
    for shown, count in ((7, 0), (8, 1)):
        story = Story()
        story.change(3, ("a", 1, 5, 1))
        story.change(4, ("a", 1, 2, 1))
        story.event("v", "open", 4)
        story.event("v", "row", 4, 1, 5, -1)
        story.event("v", "row", 4, 1, shown)
        story.change(6, ("a", 1, 1, 1))
        story.event("v", "row", 6, 1, 7, -1)
        story.event("v", "row", 6, 1, 8)
        story.event("v", "watermark", 9)
        assert len(story.judged(tmp_path / str(shown), SUMS).findings) == count
