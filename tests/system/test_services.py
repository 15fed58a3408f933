"""Servers of others in containers: what befalls them bites, what is correct passes, and what is forgotten is found."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from harness.core.record import BUSY

pytestmark = pytest.mark.docker
NOTEBOOK = f"{Path(__file__).with_name('notebook.py')}:notebook"
PLAN = Path(__file__).with_name("plans") / "notebook.json"
LIMIT_S = 180
SEED = 7


def run(store: Path, *options: str) -> tuple[int, Path]:
    """The exit code and the folder of a run of that plan."""
    seamark = str(Path(sys.executable).with_name("seamark"))
    command = [seamark, "run", "--cluster", NOTEBOOK, "--runtime", "docker", "--plan", str(PLAN), "--seed", str(SEED)]
    command += ["--time", "19", "--engine", "local", "--store", str(store), *options]
    print(f"seed {SEED}:", *command)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (folder,) = (store / "notebook").iterdir()
    return done.returncode, folder


def test_every_fault_bites_and_a_correct_server_passes(tmp_path: Path) -> None:
    code, folder = run(tmp_path)
    faults = parquet.read_table(folder / "history" / "faults.parquet").to_pylist()
    done = [row for row in faults if row["phase"] == "effect" and row["kind"] != BUSY]
    effects = {row["step"]: (row["kind"], row["effect"], row["note"]) for row in done}
    assert len(effects) == len(json.loads(PLAN.read_text())["steps"])
    assert [each for each in effects.values() if not each[1]] == []
    assert code == 0
    sessions = parquet.read_table(folder / "history" / "events.parquet", columns=["session"])["session"].to_pylist()
    assert len(set(sessions)) >= 3  # Cut off and crashed, the subscriber has come back.


def test_a_server_that_forgets_is_found(tmp_path: Path) -> None:
    code, folder = run(tmp_path, "--bug", "forgetful")
    report = json.loads((folder / "report.json").read_text())
    violated = {promise["id"] for promise in report["promises"] if promise["verdict"] == "violated"}
    assert code == 1
    assert {"NB-1", "NB-2"} <= violated
