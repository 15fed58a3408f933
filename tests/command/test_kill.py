"""A harness that is killed or interrupted loses nothing that was recorded, and never passes afterwards."""

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import harness.run.running
from tests.command.broken import BROKEN_CHILD
from tests.command.conftest import SEED, SMALL, Seamark

DRAWN = int(os.environ.get("SEAMARK_TEST_SEED", "0"))  # Decides when the harness dies.
KILLED = str(Path(__file__).with_name("killed.py"))
RUN = ("run", "--seed", str(SEED), *SMALL, "--quiet")
RECORDS = {"load": 1500, "healing": 1, "final": 20}  # Fewer than such a run has in that phase.
TIMES = int(os.environ.get("SEAMARK_TEST_TIMES", "1"))  # More kills in each phase.


def killed(moment: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """That run in a group of processes of its own, which may be killed as a whole."""
    environment = os.environ | {"SEAMARK_TEST_RECORDED": str(folder / "recorded")}
    command = [sys.executable, KILLED, moment, *RUN]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, start_new_session=True
    )


def recorded(folder: Path) -> set[int]:
    """The invocations that the journal had taken before the end, as the simulation told."""
    return set(map(int, (folder / "recorded").read_text(encoding="ascii").split()))


def stored(run: Path) -> set[int]:
    return set(pq.read_table(run / "history" / "ops.parquet")["index"].to_pylist())


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How many calls the harness makes in each phase of a run that is not killed."""
    done = killed("set-up:0", tmp_path_factory.mktemp("counted"))
    assert done.returncode == 0
    return {name: int(count) for name, count in (line.rsplit(" ", 1) for line in done.stderr.splitlines())}


@pytest.mark.parametrize("time", range(TIMES))
@pytest.mark.parametrize("phase", ["load", "healing", "final"])
def test_a_kill_while_it_records_loses_no_invocation(seamark: Seamark, tmp_path: Path, phase: str, time: int) -> None:
    number = random.Random(f"{DRAWN}/{phase}/{time}").randint(1, RECORDS[phase])
    print(f"seed {DRAWN}: at record {number} of {phase}")
    assert killed(f"{phase}:{number}", tmp_path).returncode == -signal.SIGKILL
    (run,) = (tmp_path / "store" / "tutorial").iterdir()
    assert not (run / "report.json").exists()
    outcome = seamark("check", run, "--engine", "local", "--json")
    assert (outcome.code, outcome.json["verdict"], outcome.json["incomplete"]) == (3, "vacuous", True)
    assert stored(run) == recorded(tmp_path)


@pytest.mark.parametrize("time", range(TIMES))
def test_a_kill_while_it_is_judged_loses_nothing(
    seamark: Seamark, tmp_path: Path, calls: dict[str, int], stored_run: Path, time: int
) -> None:
    number = random.Random(f"{DRAWN}/checking/{time}").randint(1, calls["checking"] * 9 // 10)
    print(f"seed {DRAWN}: at call {number} of checking")
    assert killed(f"checking:{number}", tmp_path).returncode == -signal.SIGKILL
    (run,) = (tmp_path / "store" / "tutorial").iterdir()
    outcome = seamark("check", run, "--engine", "local", "--json")
    assert (outcome.code, outcome.json["incomplete"]) == (0, False)  # All was recorded, so all can be judged.
    assert stored(run) == stored(stored_run)


@pytest.mark.parametrize("time", range(TIMES))
def test_a_kill_before_anything_is_recorded_leaves_nothing_that_passes(
    seamark: Seamark, tmp_path: Path, calls: dict[str, int], time: int
) -> None:
    number = random.Random(f"{DRAWN}/set-up/{time}").randint(calls["set-up"] // 4, calls["set-up"] * 9 // 10)
    print(f"seed {DRAWN}: at call {number} of set-up")
    assert killed(f"set-up:{number}", tmp_path).returncode == -signal.SIGKILL
    for run in tmp_path.glob("store/tutorial/*"):
        assert seamark("check", run, "--engine", "local").code in (3, 4)
    assert seamark("list").code == 0


def test_findings_count_in_a_run_that_was_killed(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.run.running, "CHILDREN", {"sim": (BROKEN_CHILD, "SIGKILL:final:20")})
    lossy = ("--cluster", "tutorial", "--bug", "late-row", "--time", "12", "--seed", "1", "--engine", "local")
    outcome = seamark("run", *lossy, "--json")
    assert (outcome.code, outcome.json["verdict"], outcome.json["incomplete"]) == (1, "invalid", True)
    checked = seamark("check", tmp_path / str(outcome.json["run"]), "--engine", "local", "--json")
    assert (checked.code, checked.json["findings"]) == (1, outcome.json["findings"])


def test_a_simulation_dies_with_its_harness(tmp_path: Path) -> None:
    """Its standard error is a file, so what it holds open until it dies is a pipe by name."""
    survived, pipe = tmp_path / "survived", tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    environment = os.environ | {"SEAMARK_TEST_SURVIVED": str(survived), "SEAMARK_TEST_RECORDED": str(pipe)}
    code = (
        "import sys, harness.run.running; from harness.cli.main import main; "
        f"harness.run.running.CHILDREN = {{'sim': ({BROKEN_CHILD!r}, 'orphan:load:100')}}; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *RUN], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    os.set_blocking(reader, True)
    while os.read(reader, 1 << 16):  # Ends when the last writer is gone.
        pass
    os.close(reader)
    assert not survived.exists()


def test_an_interrupt_ends_with_130_and_keeps_the_run(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.run.running, "CHILDREN", {"sim": (BROKEN_CHILD, "interrupt:load:700")})
    outcome = seamark(*RUN)
    assert (outcome.code, outcome.out) == (130, "")
    kept, judge, last = outcome.err.splitlines()
    assert kept.startswith("  kept in store/")
    assert judge.startswith("  judge   seamark check store/")
    assert last == "seamark: interrupted"
    (run,) = (tmp_path / "store" / "tutorial").iterdir()
    assert "not judged" in seamark("list").out
    checked = seamark("check", run, "--engine", "local", "--json")
    assert (checked.code, checked.json["incomplete"]) == (3, True)
    assert len(stored(run)) > 50


def test_an_interrupt_of_a_batch_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    """The interrupt comes as a terminal sends it: to the whole group, while a simulation is under way."""
    code = "from harness.cli.entry import main; main()"
    command = [
        sys.executable,
        "-c",
        code,
        "run",
        "--cluster",
        "tutorial",
        "--seed",
        "1",
        "--count",
        "9",
        "--jobs",
        "1",
        "--time",
        "600",
    ]
    with subprocess.Popen(
        [*command, "--engine", "local"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as batch:  # fmt: skip
        journal = None
        while journal is None and batch.poll() is None:
            journal = next(tmp_path.glob("store/tutorial/*/journal.log"), None)
            with contextlib.suppress(subprocess.TimeoutExpired):
                batch.wait(0.02)
        os.killpg(batch.pid, signal.SIGINT)
        out, err = batch.communicate()
    assert batch.returncode == 130
    assert "Traceback" not in out + err
    done, last = err.splitlines()
    assert " runs: " in done
    assert done.endswith("they are kept: seamark list")
    assert last == "seamark: interrupted"
