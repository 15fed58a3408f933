"""S21 by hand: what was acknowledged before a crash, and is gone behind it."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.history.around import NOTHING_AROUND, Crashes
from checkers.history.names import Dictionary, number
from checkers.streams.check import check
from checkers.streams.rules.sessions.lost_acknowledged import LOST_ACKNOWLEDGED, lost_acknowledged
from checkers.streams.view import Ruling, StreamView
from checkers.words.checks import STREAMS
from harness.core.record import Complete, Fault, Invoke, MicroOp, Record, StreamEvent
from harness.record.formats.parquet.parquet import write_history
from nemesis.registry import EXCUSES
from tests.worlds.streams.cases import beside, contract, view

SOURCE = "ok@1 x=1; ok@2 x=2; ok@3 y=3"
HEARD = "open@0 x=1@1 x=2@2 y=3@3"
LOST = LOST_ACKNOWLEDGED.name
CRASHED = Crashes(subscriber=np.array([1]), seq=np.array([105]))  # Behind the five events of the first session.


def crashed(log: str, source: str, **changes: object) -> StreamView:
    of = view(log, source, **({"acknowledged": "held"} | changes))
    return beside(of, replace(NOTHING_AROUND, crashes=CRASHED))


def ruling(log: str, source: str = SOURCE, **changes: object) -> Ruling:
    return lost_acknowledged(crashed(log, source, **changes))


def values(log: str, source: str = SOURCE, **changes: object) -> list[int]:
    """What is gone."""
    of = crashed(log, source, **changes)
    return [int(of.writes.value[write]) for write in lost_acknowledged(of).write]


@pytest.mark.parametrize(
    ("acknowledged", "begun", "behind", "at"),
    [
        (2, 1, [2], [1]),
        (2, 2, [], []),
        (2, 3, [], []),
        (3, 1, [2, 3], [1, 2]),
        (1, 0, [1], []),
        (0, 0, [], []),
    ],
)
def test_what_lies_between_the_opening_and_the_acknowledgement_is_gone(
    acknowledged: int, begun: int, behind: list[int], at: list[int]
) -> None:
    log = f"{HEARD} checkpoint@{acknowledged} s1/2 open@{begun}"
    assert values(log) == behind
    assert values(log, resume="at") == at


@pytest.mark.parametrize(
    ("log", "source"),
    [
        (f"{HEARD} checkpoint@3 s1/2 open@3", SOURCE),
        (f"{HEARD} checkpoint@1 checkpoint@3 s1/2 open@3", SOURCE),
        (f"{HEARD} s1/2 open@0", SOURCE),  # Nothing was acknowledged: at least once, all of it may come again.
        (f"{HEARD} s1/2 open@0 x=1@1 checkpoint@3", SOURCE),  # Only afterwards.
        (f"{HEARD} checkpoint@3 s2 open@0", SOURCE),  # Another subscriber has its own state.
        (f"{HEARD} checkpoint@3 open@0", SOURCE),  # The same session, opened anew: no crash, and no state.
        (f"{HEARD} checkpoint@3 s1/2 open", SOURCE),  # What it holds, it does not say.
        (f"{HEARD} checkpoint@3 s1/2 open@0 ~x=2@3 ~y=3@3", SOURCE),  # A snapshot gives it all anew.
        (f"{HEARD} checkpoint s1/2 open@0", SOURCE),
        ("open@3 checkpoint@9 s1/2 open@0", SOURCE),  # What lay before the first session was never its own.
        ("open:x@0 x=1@1 x=2@2 checkpoint@3 s1/2 open:x@2", SOURCE),  # It never asked for y.
        (f"{HEARD} checkpoint@3 s1/2 open@1", "ok@1 x=1"),  # Nothing was written between.
        (f"{HEARD} checkpoint@3 s1/2 open@1", "ok@1 x=1; fail@2 x=2; ok y=4"),
        ("open@0 x=1@1 gap checkpoint@3 s1/2 open@1", SOURCE),  # The stream had admitted a loss before.
    ],
)
def test_legal_restarts_are_not_accused(log: str, source: str) -> None:
    assert values(log, source) == []


def test_what_was_acknowledged_two_sessions_ago_counts_still() -> None:
    log = f"{HEARD} checkpoint@3 s1/2 open@3 s1/3 open@1 s1/4 open@0"
    assert values(log) == [2, 3, 1]  # Each once: what session 3 lost, session 4 lacks as well.


def test_an_acknowledgement_before_the_rows_came_counts() -> None:
    assert values("open@0 checkpoint@3 s1/2 open@0") == [1, 2, 3]


def test_partitions_are_compared_each_by_itself() -> None:
    source = "ok@1 x[1]=1; ok@2 y[2]=2"
    log = "open[1]@0 open[2]@0 x[1]=1@1 y[2]=2@2 checkpoint[1]@1 checkpoint[2]@2 s1/2 open[1]@1 open[2]@0"
    how: dict[str, object] = {"is_position_global": False, "wm_scope": "session"}
    assert values(log, source, **how) == []  # Only with what a session begins first, its state is told.
    assert values(log.replace("s1/2 open[1]@1 open[2]@0", "s1/2 open[2]@0"), source, **how) == [2]
    assert values(log.replace("s1/2 open[1]@1 open[2]@0", "s1/2 open[2]@0"), source) == [2]
    assert values(log.replace("s1/2 open[1]@1 open[2]@0", "s1/2 open[1]@1"), source, **how) == []


def test_what_was_acknowledged_of_a_log_that_ended_is_not_held_of_the_next_one_with_its_name() -> None:
    source, changes = "ok@1 x[1]=1; ok@2 x[1]=2", {"is_position_global": False}
    log = "open[1]@0 x[1]=1@1 x[1]=2@2 checkpoint[1]@2 {}[1] s1/2 open[1]@0"
    assert values(log.format("close"), source, **changes) == [1, 2]
    assert values(log.format("end"), source, **changes) == []


def test_what_a_session_holds_of_one_partition_says_nothing_of_others() -> None:
    log = "open@0 x[0]=1@1 y[1]=2@2 checkpoint@2 s1/2 open[0]@0"
    assert values(log, "ok@1 x[0]=1; ok@2 y[1]=2") == [1]


@pytest.mark.parametrize(
    ("log", "witnesses"),
    [
        (f"{HEARD} checkpoint@3 s1/2 open@3", 1),
        ("open@0 x=1@1 x=2@2 checkpoint@3 y=3@3 s1/2 open@3", 1),
        (f"{HEARD} checkpoint@3 s1/2 open", 0),
        (f"{HEARD} s1/2 open@3", 0),
        ("open@0 x=1@1 x=2@2 y=3@3 s1/2 open@2 checkpoint@3 s1/3 open@3", 0),  # The crash was before.
        ("open@0 w@1 w@2 checkpoint@3 w@3 s1/2 open@3", 0),  # Nothing had been sent that it could lose.
        ("open@0 x=2@2 y=3@3 checkpoint@1 w@1 s1/2 open@1", 0),  # Nothing of what it had been sent.
        (f"{HEARD} checkpoint@3 s2 open@3", 0),
        (f"{HEARD} checkpoint@3 s1/2 open@3 s1/3 open@3", 2),
        (f"{HEARD} checkpoint@3 s1/2 open@3 end s1/3 open@3", 1),  # Of a log that ended nothing is held in the next.
    ],
)
def test_a_witness_is_an_opening_behind_a_crash_behind_an_acknowledgement(log: str, witnesses: int) -> None:
    found = ruling(log).witnesses
    assert found == witnesses


def test_at_the_acknowledged_position_nothing_is_held_where_sessions_resume_at_it() -> None:
    log = "open@0 x=1@1 w@1 w@1 checkpoint@1 s1/2 open@1"
    assert ruling(log).witnesses == 1
    assert ruling(log, resume="at").witnesses == 0


def records(begun: int, *, effect: int | None = 1) -> list[Record]:
    """A subscriber that was sent two rows, acknowledged both, crashed, and began again."""
    result: list[Record] = []
    for index, (key, value) in enumerate((("x", 1), ("y", 2))):
        mops = (MicroOp("append", key, value),)
        result.append(Invoke(index, index, index, 0, "txn", None, mops))
        result.append(Complete(index, index, "ok", None, mops, commit_ts=index + 1))
    result.append(StreamEvent(2, "s1", 1, 0, "open", position=0))
    result.append(StreamEvent(3, "s1", 1, 1, "row", key="x", value=1, position=1, ordinal=0))
    result.append(StreamEvent(4, "s1", 1, 2, "row", key="y", value=2, position=2, ordinal=0))
    result.append(StreamEvent(5, "s1", 1, 3, "checkpoint", position=2))
    result.append(Fault(6, 0, "begin", "crash", ("s1",)))
    result.append(Fault(6, 0, "effect", "crash", ("s1",), effect=effect))
    result.append(Fault(7, 0, "end", "crash", ("s1",)))
    result.append(StreamEvent(8, "s1", 2, 0, "open", position=begun))
    return result


def test_the_finding_says_what_is_gone(tmp_path: Path) -> None:
    write_history(records(begun=1), tmp_path)
    result = check(tmp_path, Context(engine=LocalEngine(1), excuses=EXCUSES, contract=contract(acknowledged="held")))
    [finding] = (each for each in result.findings if each.anomaly == LOST)
    what = f"value 2 of key {number(Dictionary(tmp_path).identity('y'))} at position 2 (operation 1)"
    assert finding.sentence == (
        f"s1 acknowledged position 2, and began session 2 with what it holds up to position 1: {what} is gone, and "
        "the source need not send it again."
    )
    assert (finding.anomaly, finding.checker, finding.count, finding.ops) == (LOST, STREAMS, 1, (1,))
    assert finding.events == (7, 11)
    assert result.witnesses[LOST] == 1


@pytest.mark.parametrize(("begun", "effect", "witnesses"), [(2, 1, 1), (2, None, 0), (2, 0, 0)])
def test_a_crash_without_effect_is_no_witness(begun: int, effect: int | None, witnesses: int, tmp_path: Path) -> None:
    write_history(records(begun, effect=effect), tmp_path)
    result = check(tmp_path, Context(engine=LocalEngine(1), excuses=EXCUSES, contract=contract(acknowledged="held")))
    assert (result.findings, result.witnesses[LOST]) == ((), witnesses)


def test_without_the_declaration_nothing_is_judged(tmp_path: Path) -> None:
    write_history(records(begun=1), tmp_path)
    result = check(tmp_path, Context(engine=LocalEngine(1), excuses=EXCUSES, contract=contract()))
    assert (result.findings, result.witnesses[LOST]) == ((), 0)


def test_a_history_without_events_has_no_witness(tmp_path: Path) -> None:
    write_history(records(begun=1)[:4], tmp_path)
    result = check(tmp_path, Context(engine=LocalEngine(1), excuses=EXCUSES, contract=contract(acknowledged="held")))
    assert (result.findings, result.witnesses[LOST]) == ((), 0)
