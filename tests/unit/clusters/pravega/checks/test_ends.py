"""How transactions end, and the ends of the stream: statuses, seals, cuts, watermarks."""

from pathlib import Path

import pytest

from clusters.pravega.checks.ends import check
from clusters.pravega.shape import SPACE
from harness.core.record import Json
from harness.core.verdict import Judgement
from tests.unit.clusters.pravega.checks.shown import LEFT, TWO, Shown, found, plain
from tests.worlds.run_cases import MS


def at_rest(run: Shown, start: int = 0, later: int = 0) -> Shown:
    """A stream of two segments, of which one has a successor; it begins at these offsets."""
    run.epochs((0, TWO), (1, [(0, SPACE // 2, 2, 1), TWO[1]]))
    run.segment("0/0", [plain(LEFT, 1), plain(LEFT, 2, 2)], is_sealed=True, start=start)
    run.segment("1/0")
    run.segment("2/1", [plain(LEFT, 3, 3)], start=later)
    return run


def judged(run: Shown, folder: Path) -> Judgement:
    return at_rest(run).judged(check, folder)


@pytest.mark.parametrize(
    ("one", "other", "anomalies"),
    [
        ("open", "committed", []),
        ("unknown", "open", []),
        ("aborting", "aborted", []),
        ("committing", "open", [("status-regress", 1)]),
        ("aborted", "committing", [("status-regress", 1)]),
        ("committed", "aborted", [("status-regress", 1)]),
        ("committed", "unknown", [("status-regress", 1)]),
    ],
)
def test_a_status_only_goes_on(tmp_path: Path, one: str, other: str, anomalies: list[tuple[str, int]]) -> None:
    run = Shown()
    run.saw(0, 10, [7, one], [8, "open"])
    run.saw(11, 20, [7, other])
    judgement = judged(run, tmp_path / "later")
    assert (found(judgement), judgement.witnesses["status-regress"]) == (anomalies, 1)
    at_once = Shown()
    at_once.saw(0, 10, [7, one])
    at_once.saw(9, 20, [7, other])
    assert found(judged(at_once, tmp_path / "at once")) == []


def test_an_accepted_commit_is_a_status_and_ends_as_committed(tmp_path: Path) -> None:
    run = Shown()
    run.committed(0, 10, 7)
    run.saw(11, 12, [7, "aborting"])
    run.txn(7, "aborted")
    assert found(judged(run, tmp_path / "aborted")) == [("status-regress", 1), ("uncommitted", 1)]
    for status in ("committed", "committing"):  # The latter is left to the check of settling.
        run = Shown()
        run.committed(0, 10, 7)
        run.txn(7, status)
        judgement = judged(run, tmp_path / status)
        assert (found(judgement), judgement.witnesses["uncommitted"]) == ([], 1)


def test_transactions_of_a_sealed_stream_have_ended(tmp_path: Path) -> None:
    for status, sealed, anomalies in (
        ("open", True, [("unended", 1)]),
        ("open", False, []),
        ("aborted", True, []),
    ):
        run = Shown()
        run.txn(7, status)
        states: list[list[Json]] = [["state", "sealing"], ["state", "sealed"]]
        run.changes(*(states if sealed else []))
        judgement = judged(run, tmp_path / f"{status}-{sealed}")
        assert (found(judgement), judgement.witnesses["unended"]) == (anomalies, int(sealed))


def test_a_truncation_takes_nothing_behind_its_cut(tmp_path: Path) -> None:
    at_first: list[Json] = ["truncated", 0, [[0, 0, 1], [1, 0, 0]]]
    later: list[Json] = ["truncated", 1, [[2, 1, 1], [1, 0, 0]]]
    for name, cuts, start, second, anomalies in (
        ("up to", [at_first], 1, 0, []),
        ("behind", [at_first], 2, 0, [("cut-overrun", 1)]),
        ("other epoch", [at_first], 1, 1, [("cut-overrun", 1)]),
        ("whole", [at_first, later], 2, 1, []),
        ("none", [["truncated", -1, []]], 1, 0, [("cut-overrun", 1)]),
    ):
        run = Shown()
        run.changes(*cuts)
        judgement = at_rest(run, start, second).judged(check, tmp_path / name)
        assert (found(judgement), judgement.witnesses["cut-overrun"]) == (anomalies, 1 + bool(second)), name


def test_what_was_acknowledged_by_a_watermarks_time_lies_before_its_cut(tmp_path: Path) -> None:
    def run(time_ms: int, cut: list[Json], writer: str = "w1.1") -> list[tuple[str, int]]:
        told = Shown()
        told.append(0, 10, LEFT, 2)
        told.changes(["mark", time_ms * MS, cut, [writer]])
        return found(judged(told, tmp_path / f"{time_ms}-{cut}-{writer}"))

    behind = [("beyond-watermark", 1)]
    assert run(20, [[0, 0, 2]]) == run(20, [[2, 1, 0]]) == []  # A successor covers all of its predecessors.
    assert run(20, [[0, 0, 1]]) == run(20, [[1, 0, 9]]) == run(20, []) == behind
    assert run(5, [[0, 0, 1]]) == []  # It was not acknowledged by then.
    assert run(20, [[0, 0, 1]], "w2.1") == []  # The watermark promises nothing about that writer.
