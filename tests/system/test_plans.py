"""One fault plan, as a file, in both runtimes: the same kinds of events, with a measured effect, and no finding."""

import json
import subprocess
import sys
from pathlib import Path

import docker
import pytest
from pyarrow import parquet

from harness.core.record import BUSY

PLANS = Path(__file__).with_name("plans")
SEED = 5
LIMIT_S = 180  # A run of 20 seconds that takes longer hangs.
TIMES_S = {"tutorial": 20, "ndb": 20, "ticdc": 8, "pravega": 8, "materialize": 8}


def carried_out(cluster: str, runtime: str, store: Path) -> Path:
    """The folder of a run of that cluster's plan."""
    plan = PLANS / f"{cluster}.json"
    seamark = str(Path(sys.executable).with_name("seamark"))
    command = [seamark, "run", "--cluster", cluster, "--runtime", runtime]
    command += ["--plan", str(plan), "--seed", str(SEED), "--time", str(TIMES_S[cluster])]
    command += ["--engine", "local", "--store", str(store)]
    print(f"seed {SEED}:", *command)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode in (0, 3), done.stdout + done.stderr  # 3: too little was seen of some promise.
    (run,) = (store / cluster).iterdir()
    return run


def events(run: Path) -> tuple[list[tuple[int, str, str, str]], dict[int, int]]:
    """Each event of a fault as (step, phase, package, targets), ordered by step; and what each step was seen to do."""
    rows = parquet.read_table(run / "history" / "faults.parquet").to_pylist()
    rows = [row for row in rows if row["kind"] != BUSY]
    kinds = sorted((row["step"], row["phase"], row["kind"], str(row["targets"])) for row in rows)
    return kinds, {row["step"]: row["effect"] for row in rows if row["phase"] == "effect"}


@pytest.mark.docker
@pytest.mark.parametrize("cluster", TIMES_S)
def test_one_plan_has_the_same_events_and_an_effect_in_both_runtimes(
    engine: docker.DockerClient, cluster: str, tmp_path: Path
) -> None:
    simulated, in_simulation = events(carried_out(cluster, "sim", tmp_path / "sim"))
    contained, in_containers = events(carried_out(cluster, "docker", tmp_path / "docker"))
    steps = len(json.loads((PLANS / f"{cluster}.json").read_text())["steps"])
    assert simulated == contained
    assert len(in_simulation) == len(in_containers) == steps
    assert [step for step, effect in in_simulation.items() if effect == 0] == []
    assert [step for step, effect in in_containers.items() if effect == 0] == []
