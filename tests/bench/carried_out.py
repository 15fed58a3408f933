"""One run in containers, as the measurements of real systems need it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
from pyarrow import parquet

from harness.core.record import BUSY, Json

RED: Final = Path("store") / "red"  # Runs that found something, or could not decide, are kept here.


def carried_out(folder: Path, cluster: str, seed: int, *options: str) -> tuple[int, set[str], list[int]]:
    """The exit code of a run, the promises that it found violated, and the effect of each of its power failures."""
    seamark = str(Path(sys.executable).with_name("seamark"))
    command = [seamark, "run", "--cluster", cluster, "--runtime", "docker", "--seed", str(seed), *options]
    command += ["--engine", "local", "--json", "--store", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2, 3):
        told = [log.read_text(encoding="utf-8").strip() for log in folder.glob("*/*/logs/run.log")]
        print(
            f"{cluster} seed {seed}, exit {done.returncode}:",
            *(told or [done.stderr.strip()]),
            sep="\n",
            file=sys.stderr,
        )
        return done.returncode, set(), []
    report = json.loads(done.stdout)
    if done.returncode != 0:
        found = ", ".join(dict.fromkeys(each["anomaly"] for each in report["findings"]))
        print(f"{cluster} seed {seed}, exit {done.returncode}: {found or report['reason']}", flush=True)
    if done.returncode in (1, 2):
        shutil.copytree(folder / cluster, RED / f"{cluster}-{seed}", dirs_exist_ok=True)
    promises = msgspec.convert(report["promises"], list[dict[str, Json]])
    effects = [count for kind, count, _ in effects_in(folder / cluster) if kind == "power"]
    return done.returncode, {str(each["id"]) for each in promises if each["verdict"] == "violated"}, effects


def effects_in(runs: Path) -> list[tuple[str, int, str]]:
    """The package of each step of the only run there, with the count and the note of its effect."""
    [run] = runs.iterdir()
    rows = parquet.read_table(run / "history" / "faults.parquet").to_pylist()
    return [
        (row["kind"], row["effect"], row["note"]) for row in rows if row["phase"] == "effect" and row["kind"] != BUSY
    ]
