"""The process beside a worker of Spark: what it answers, and what is said of one that ends."""

import pickle
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from harness.campaign import away
from harness.campaign.ledger.rows import Row
from harness.campaign.task import Task
from harness.scenario.consent import Code
from harness.scenario.scenario import Scenario


def message(folder: Path, seed: int) -> bytes:
    """A short run as a pickled task."""
    scenario = Scenario(cluster="tutorial", seed=seed, time_s=1.0, nemesis=())
    code = Code(name="tutorial", place=None)
    return pickle.dumps(Task(cell=0, attempt=1, scenario=scenario, code=code, folder=folder, store=folder))


def answer(message: bytes) -> tuple[Row | None, bytes | str]:
    """The answer to a task: the row, and the archive of its run or the reason why there is no row."""
    row, content = pickle.loads(away.there(message))  # noqa: S301  It was pickled here.
    return row, content


def test_one_process_carries_out_many_runs_and_a_broken_message_ends_it_with_a_reason(tmp_path: Path) -> None:
    try:
        rows = [answer(message(tmp_path, seed))[0] for seed in (1, 2)]
        assert [row.seed for row in rows if row is not None] == [1, 2]
        child = away._child()
        row, reason = answer(b"no task")
        assert row is None
        assert isinstance(reason, str)
        assert reason.startswith("on an executor: ")
        assert "Unpickling" in reason
        [row, _] = answer(message(tmp_path, 3))
        assert row is not None
        assert row.seed == 3
        assert away._child() is not child
    finally:
        away._child().close()
        away._child.cache_clear()


def test_an_archive_is_unpacked_beside_itself_once(tmp_path: Path) -> None:
    archive = tmp_path / "seamark-all-1.zip"
    with ZipFile(archive, "w") as packed:
        packed.writestr("harness/one.py", "x = 1\n")
    code = away._code(archive)
    assert (code / "harness" / "one.py").read_text() == "x = 1\n"
    (code / "harness" / "kept").touch()
    assert away._code(archive) == code
    assert (code / "harness" / "kept").exists()
    assert {each.name for each in tmp_path.iterdir()} == {archive.name, code.name}


def test_code_in_a_folder_stays_where_it_is(tmp_path: Path) -> None:
    assert away._code(tmp_path) == tmp_path


def test_of_two_workers_that_unpack_at_once_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "seamark-all-1.zip"
    with ZipFile(archive, "w") as packed:
        packed.writestr("one.py", "x = 1\n")

    def other_was_faster(**_: object) -> str:
        (tmp_path / "seamark-all-1").mkdir()
        (tmp_path / "seamark-all-1" / "two.py").touch()
        (tmp_path / "mine").mkdir()
        return str(tmp_path / "mine")

    monkeypatch.setattr(sys.modules[away.__name__], "mkdtemp", other_was_faster)
    assert [each.name for each in away._code(archive).iterdir()] == ["two.py"]
    assert not (tmp_path / "mine").exists()
