"""One run in containers, as the measurements of real systems need it."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
from pyarrow import parquet

from harness.core.record import Json


def carried_out(folder: Path, cluster: str, seed: int, *options: str) -> tuple[int, set[str], list[int]]:
    """The exit code of a run, the promises that it found violated, and the effect of each of its power failures."""
    seamark = str(Path(sys.executable).with_name("seamark"))
    command = [seamark, "run", "--cluster", cluster, "--runtime", "docker", "--seed", str(seed), *options]
    command += ["--engine", "local", "--json", "--store", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        print(done.stderr.strip() or done.stdout[:500], file=sys.stderr)
        return done.returncode, set(), []
    promises = msgspec.convert(json.loads(done.stdout)["promises"], list[dict[str, Json]])
    [run] = (folder / cluster).iterdir()
    rows = parquet.read_table(run / "history" / "faults.parquet").to_pylist()
    effects = [row["effect"] for row in rows if row["phase"] == "effect" and row["kind"] == "power"]
    return done.returncode, {str(each["id"]) for each in promises if each["verdict"] == "violated"}, effects
