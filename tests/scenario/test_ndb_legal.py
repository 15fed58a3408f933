"""What a correct NDB may show raises no alarm: histories written by hand, each with a twin that is one step too far.

The numbers are those of the specification's list of legal observations, N4. Runs that show more of them, and that no
check says anything about either, are in test_ndb_oddities.py.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from clusters.ndb.cluster import Ndb
from harness.core.machine import Settings
from harness.core.record import Footer, Mark, State, StreamEvent
from harness.judging.judge import judge
from harness.record.formats.load import Loaded
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import RunFile
from harness.report.model import Report
from nemesis.plan import Plan
from tests.worlds.epoch_cases import Epoch, Story, epoch

NDB = Ndb()
PARAMETERS = {each.name: each.low for each in NDB.parameters}
RUN = RunFile(
    versions={},
    cluster="ndb",
    runtime="sim",
    seed=0,
    options={},
    parameters=PARAMETERS,
    workload="list-append",
    types=("txn",),
    checks=(),
    plan=Plan(steps=()),
    promises=NDB.promises,
    stream=NDB.stream,
    subscribers=("s1",),
    bounds=NDB.bounds(Settings(bugs=frozenset(), parameters=PARAMETERS)),
)


class Told(Story):
    """A story with what s1 is told."""

    session = 1

    def row(self, index: int, key: str, value: int, at: Epoch) -> None:
        """A change by the operation of that index."""
        number = epoch(at)
        self._tell(
            StreamEvent(
                self._now, "s1", self.session, 0, "row", None, ord(key), value, number, None, number, 100 + index
            )
        )

    def opens(self, at: Epoch) -> None:
        """A session begins, behind that epoch."""
        self._tell(StreamEvent(self._now, "s1", self.session, 0, "open", position=epoch(at)))

    def restored(self, key: str, element: int, at: Epoch) -> None:
        """What the restart found of a row."""
        self._tell(State(self._now, "d1", "restored", ord(key), [element], epoch(at), 1))

    def fails(self, at: Epoch) -> None:
        """The session ends, as the whole cluster has failed; what follows is another one."""
        self._tell(StreamEvent(self._now, "s1", self.session, 0, "gap", value="cluster-failure", position=epoch(at)))
        self._tell(StreamEvent(self._now, "s1", self.session, 0, "close"))
        self.session += 1

    def marks(self, *positions: Epoch, who: str = "s1", session: int = 1) -> None:
        super().marks(*positions, who=who, session=self.session)

    def both(self, first: str, seen: str, second: str, also: str) -> None:
        """Two operations that overlap, with what they say in the end; all in one epoch."""
        one, other = self.begin(first), self.begin(second)
        self.end(one, seen, (7, 0))
        self.end(other, also, (7, 0))


def judged(folder: Path, story: Story) -> Report:
    write_history([*story.records, Mark(len(story.records), "final"), Footer(0, "completed")], folder / "history")
    return judge(Loaded(history=folder / "history", format="Parquet", is_foreign=False), LocalEngine(), run_file=RUN)


def findings(report: Report) -> set[tuple[str, str | None]]:
    return {(finding.anomaly, finding.promise) for finding in report.findings}


# 1 and 2: what is read without lock; with "R" the same is read under locks until the commit.


def fractured(r: str, story: Told) -> None:
    story.both("ax1 ay1", "ax1 ay1", f"{r}x? {r}y?", f"{r}x1 {r}y")
    story.op("Rx1 Ry1", (7, 1))


def not_repeatable(r: str, story: Told) -> None:
    story.both("ax1", "ax1", f"{r}x? {r}x?", f"{r}x {r}x1")
    story.op("Rx1", (7, 1))


def lost_update(r: str, story: Told) -> None:
    story.both(f"{r}x? ax1", f"{r}x ax1", f"{r}x? ax2", f"{r}x ax2")
    story.op("Rx12", (7, 1))


def write_skew(r: str, story: Told) -> None:
    story.both(f"{r}x? {r}y? ax1", f"{r}x {r}y ax1", f"{r}x? {r}y? ay2", f"{r}x {r}y ay2")
    story.op("Rx1 Ry2", (7, 1))


def lock_read_then(r: str, story: Told) -> None:
    """The first read waits for a lock, which goes before all rows of the other are committed."""
    story.both("ax1 ay1", "ax1 ay1", f"Rx? {r}y?", f"Rx1 {r}y")
    story.op("Rx1 Ry1", (7, 1))


@pytest.mark.parametrize("tell", [fractured, not_repeatable, lost_update, write_skew, lock_read_then])
def test_odd_reads_are_legal_without_locks_only(tmp_path: Path, tell: Callable[[str, Told], None]) -> None:
    free, locked = Told(), Told()
    tell("r", free)
    tell("R", locked)
    assert findings(judged(tmp_path / "free", free)) == set()
    assert "NDB-G3" in {promise for _, promise in findings(judged(tmp_path / "locked", locked))}


@pytest.mark.parametrize(("seen", "is_wrong"), [("rx ax2 rx12", False), ("rx ax2 rx2", False), ("rx ax2 rx1", True)])
def test_a_committed_read_sees_what_others_committed_since_the_last_one_and_always_its_own_write(
    tmp_path: Path, seen: str, is_wrong: bool
) -> None:
    """NDB's READ COMMITTED holds for each row and read: so `internal` is allowed, and `missed-own-write` is not."""
    story = Told()
    reader = story.begin("rx? ax2 rx?")
    if "1" in seen:
        story.op("ax1", (7, 0))
    story.end(reader, seen, (7, 1))
    found = findings(judged(tmp_path, story))
    assert (("missed-own-write", "NDB-G1") in found, bool(found)) == (is_wrong, is_wrong)


# 3, 5 to 8 and 15: streams, restarts, and outcomes that come late. The twin takes the flag.


def order_inside_an_epoch(story: Told, *, is_wrong: bool) -> None:
    """3: dependent transactions in another order between keys, and rows of one that are not adjacent."""
    one, other, both = story.op("ax1", (7, 0)), story.op("rx1 ay1", (7, 0)), story.op("ax2 ay2", (7, 0))
    story.opens((6, 9))
    story.row(other, "y", 1, (7, 0))
    story.row(both, "y", 2, (7, 0))
    changes = [(one, "x", 1), (both, "x", 2)]
    for index, key, value in reversed(changes) if is_wrong else changes:
        story.row(index, key, value, (7, 0))
    story.marks((7, 0), (7, 1))
    story.op("rx12 ry12", (7, 1))


def jumps_of_epochs(story: Told, *, is_wrong: bool) -> None:
    """5: the next checkpoint begins with 0, and its number is any higher one; epochs may be empty."""
    story.opens((6, 9))
    story.marks((7, 0), (7, 1), (7, 3) if is_wrong else (7, 2), (9, 0))


def net_changes(story: Told, *, is_wrong: bool) -> None:
    """6: of two changes of one row in one transaction only the last is an event."""
    index = story.op("ax1 ax2", (7, 0))
    story.opens((6, 9))
    if is_wrong:
        story.row(index, "x", 1, (7, 0))
    story.row(index, "x", 2, (7, 0))
    story.marks((7, 0), (7, 1))


def event_before_the_answer(story: Told, *, is_wrong: bool) -> None:
    """7: a subscriber may have the event, and all of its epoch, before the client has its answer."""
    story.opens((6, 9))
    index = story.begin("ax1")
    if is_wrong:
        story.marks((7, 0), (7, 1))
    story.row(index, "x", 1, (7, 0))
    story.marks((7, 2) if is_wrong else (7, 0))
    story.end(index, "ax1", (7, 0))


def loss_of_what_was_unsaved(story: Told, *, is_wrong: bool) -> None:
    """8: the whole cluster fails; what was not saved is gone, and a subscriber was ahead. Epochs jump over the loss."""
    story.opens((6, 9))
    story.row(story.op("ax1", (7, 0)), "x", 1, (7, 0))
    story.marks((7, 0), (8, 0))
    story.row(story.op("rx1 ax2", (8, 1)), "x", 2, (8, 1))
    story.marks((8, 1))
    story.fails((8, 2))
    story.restart(8 if is_wrong else 7, (12, 0))
    story.restored("x", 1, (7, 0))
    story.opens((11, 9))
    story.op("Rx1", (12, 0))
    story.row(story.op("ax3", (12, 0)), "x", 3, (12, 0))
    story.marks((12, 0))
    story.op("Rx13", (12, 1))


def unclear_that_commits(story: Told, *, is_wrong: bool) -> None:
    """15: nobody knows for a while what became of it; then it turns out to have been committed."""
    story.opens((6, 9))
    index = story.op("ax1 ay1", None, "fail" if is_wrong else "info")
    story.op("rx ry", (7, 0))
    story.row(index, "x", 1, (7, 0))
    story.row(index, "y", 1, (7, 0))
    story.marks((7, 0))
    story.op("Rx1 Ry1", (7, 1))


TWINS: tuple[tuple[Callable[..., None], str], ...] = (
    (order_inside_an_epoch, "order-inversion"),
    (jumps_of_epochs, "epoch-shape"),
    (net_changes, "wrong-value"),
    (event_before_the_answer, "late-event"),
    (loss_of_what_was_unsaved, "lost-acknowledged"),
    (unclear_that_commits, "phantom-event"),
)


@pytest.mark.parametrize(("tell", "anomaly"), TWINS)
def test_what_is_legal_is_no_finding_and_one_step_further_is(
    tmp_path: Path, tell: Callable[..., None], anomaly: str
) -> None:
    legal, wrong = Told(), Told()
    tell(legal, is_wrong=False)
    tell(wrong, is_wrong=True)
    assert findings(judged(tmp_path / "legal", legal)) == set()
    assert anomaly in {name for name, _ in findings(judged(tmp_path / "wrong", wrong))}
