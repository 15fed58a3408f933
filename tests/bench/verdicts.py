"""Holds two checkouts to the same verdicts: `python -m tests.bench.verdicts BEFORE AFTER [SEEDS]`.

Both are folders of Seamark that `make setup` has seen. Each carries out the same seeds of NDB and of the tutorial, with
and without each planted bug, and judges the same stored histories. Reports must be equal but for the time that they
took and where they are: findings, fingerprints, witnesses, hashes of histories. Prints each difference; exits with 1 if
there is one. SEEDS is for the clean NDB (300 without it); the tutorial gets a third, each bug a thirtieth.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster

SHARED: Final = Path(__file__).resolve().parents[3] / "shared" / "histories"
# What no two runs share, and what judged them.
IN_PASSING: Final = ("seconds", "started_utc", "run", "page", "versions", "engine")
SHORT: Final = ("--time", "20", "--engine", "local", "--json", "--jobs", "2")


def seamark(checkout: Path, *arguments: str, store: Path) -> Any:
    """The JSON output of `seamark ARGUMENTS` in that checkout; its error line if it prints nothing."""
    command = [str(checkout / ".venv" / "bin" / "seamark"), *arguments]
    done = subprocess.run(command, cwd=store, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout else f"exit {done.returncode}: {done.stderr.strip()}"


def essence(report: Any, store: Path) -> Any:
    """A report without the fields that no two runs share."""
    if not isinstance(report, dict):
        return str(report).replace(str(store), "")
    return {name: value for name, value in report.items() if name not in IN_PASSING}


def bugs_of(cluster: str) -> list[str]:
    """The bugs that can be planted in it."""
    return sorted(load_cluster(installed(cluster)).bugs)


def batches(seeds: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each batch of runs, with its name."""
    for cluster, count in (("ndb", seeds), ("tutorial", max(1, seeds // 3))):
        yield cluster, ("--cluster", cluster, "--seed", "0", "--count", str(count))
        few = ("--seed", "0", "--count", str(max(1, seeds // 30)))
        for bug in bugs_of(cluster):
            yield f"{cluster} --bug {bug}", ("--cluster", cluster, "--bug", bug, *few)


def runs(checkout: Path, arguments: tuple[str, ...]) -> list[Any]:
    """The reports of a batch, in the order of their seeds."""
    with tempfile.TemporaryDirectory(prefix="verdicts-") as folder:
        batch = seamark(checkout, "run", *arguments, *SHORT, store=Path(folder))
        reports = batch.get("runs", [batch]) if isinstance(batch, dict) else [batch]  # A batch of one is a report.
        return [essence(each, Path(folder)) for each in reports]


def judged(checkout: Path, history: Path) -> list[Any]:
    """The report on a stored history, which is copied beside the store."""
    with tempfile.TemporaryDirectory(prefix="verdicts-") as folder:
        arguments = ("check", shutil.copy(history, folder), "--engine", "local", "--json")
        return [essence(seamark(checkout, *arguments, store=Path(folder)), Path(folder))]


def compared(name: str, before: list[Any], after: list[Any]) -> int:
    """The number of reports that differ; prints the differing fields of each."""
    differing = 0
    for number, (one, other) in enumerate(zip_longest(before, after)):
        if one == other:
            continue
        differing += 1
        both = isinstance(one, dict) and isinstance(other, dict)
        fields = sorted(field for field in one | other if one.get(field) != other.get(field)) if both else (one, other)
        print(f"DIFFERENT  {name}, run {number}: {', '.join(map(str, fields))[:500]}")
    print(f"{len(before):5d} reports  {differing} differ  {name}", flush=True)
    return differing


def main() -> int:
    """Compare everything."""
    before, after = (Path(each).resolve() for each in sys.argv[1:3])
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    differing = count = 0
    for name, arguments in batches(seeds):
        pair = [runs(each, arguments) for each in (before, after)]
        differing, count = differing + compared(name, *pair), count + len(pair[0])
    for history in sorted(path for path in SHARED.rglob("*") if path.suffix in {".edn", ".json", ".log"}):
        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(judged, (before, after), (history, history))
        differing, count = differing + compared(str(history.relative_to(SHARED)), one, other), count + 1
    print(f"{count} reports of each, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
