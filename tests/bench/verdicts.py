"""Holds two checkouts to the same verdicts.

    python -m tests.bench.verdicts BEFORE AFTER [SEEDS]
    python -m tests.bench.verdicts BEFORE AFTER --stored STORE

Both checkouts are folders of Seamark that `make setup` has seen. The first form carries out the same seeds of NDB and
of the tutorial in each, with and without each planted bug, and judges the same foreign histories. SEEDS is for the
clean NDB (300 without it); the tutorial gets a third, each bug a thirtieth. The second form judges the runs of a store,
which one version has recorded. Reports must be equal but for their duration and their place: findings, fingerprints,
witnesses, hashes of histories. Prints the fields that differ in each report, and how often each field differs; exits
with 1 if any does.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster

SHARED: Final = Path(__file__).resolve().parents[3] / "shared" / "histories"
# What no two runs share, and what judged them.
IN_PASSING: Final = ("seconds", "started_utc", "run", "page", "versions", "engine", "meanings", "declared")
# Judges copies of the runs that standard input names, so that the store stays as it was recorded.
JUDGE: Final = """
import shutil, sys, tempfile
from pathlib import Path
import seamark
for line in sys.stdin:
    with tempfile.TemporaryDirectory(prefix="verdicts-") as folder:
        run = shutil.copytree(line.strip(), Path(folder) / "run")
        try:
            print(seamark.check(run).to_json().replace("\\n", " "), flush=True)
        except Exception as error:
            print('"' + type(error).__name__ + '"', flush=True)
"""
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


def judged_again(checkout: Path, stored: list[Path]) -> list[Any]:
    """The reports on stored runs, in their order, by one process of that checkout."""
    done = subprocess.run(
        [str(checkout / ".venv" / "bin" / "python"), "-c", JUDGE],
        cwd=checkout,
        input="\n".join(map(str, stored)),
        capture_output=True,
        text=True,
        check=True,
    )
    return [essence(json.loads(line), checkout) for line in done.stdout.splitlines()]


def differing_fields(one: Any, other: Any, field: str = "") -> set[str]:
    """The paths of the fields that differ, without the numbers of list elements: "findings.sentence"."""
    if one == other:
        return set()
    if isinstance(one, dict) and isinstance(other, dict):
        deeper = [
            differing_fields(one.get(name), other.get(name), f"{field}.{name}".lstrip(".")) for name in one | other
        ]
        return set().union(*deeper)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return {path for both in zip(one, other, strict=True) for path in differing_fields(*both, field)}
    return {field}


def compared(name: str, before: list[Any], after: list[Any]) -> Counter[str]:
    """How many reports differ in each field; "reports" counts them all. Prints the differing fields of each."""
    differing: Counter[str] = Counter()
    for number, (one, other) in enumerate(zip_longest(before, after)):
        if one == other:
            continue
        fields = sorted(differing_fields(one, other))
        differing.update(["reports", *fields])
        verdicts = [each.get("verdict") if isinstance(each, dict) else each for each in (one, other)]
        print(f"DIFFERENT  {name}, run {number}, {verdicts[0]} and {verdicts[1]}: {', '.join(fields)[:500]}")
    print(f"{len(before):5d} reports  {differing['reports']} differ  {name}", flush=True)
    return differing


def main() -> int:
    """Compare everything."""
    before, after = (Path(each).resolve() for each in sys.argv[1:3])
    options = sys.argv[3:]
    differing: Counter[str] = Counter()
    count = 0
    if options[:1] == ["--stored"]:
        stored = sorted(path.parent.resolve() for path in Path(options[1]).rglob("run.json"))
        with ThreadPoolExecutor(2) as pool:
            pair = list(pool.map(judged_again, (before, after), (stored, stored)))
        for run, one, other in zip(stored, *pair, strict=True):
            differing, count = differing + compared(str(run), [one], [other]), count + 1
    else:
        for name, arguments in batches(int(options[0]) if options else 300):
            pair = [runs(each, arguments) for each in (before, after)]
            differing, count = differing + compared(name, *pair), count + len(pair[0])
        for history in sorted(path for path in SHARED.rglob("*") if path.suffix in {".edn", ".json", ".log"}):
            with ThreadPoolExecutor(2) as pool:
                one, other = pool.map(judged, (before, after), (history, history))
            differing, count = differing + compared(str(history.relative_to(SHARED)), one, other), count + 1
    print(f"{count} reports of each, {differing['reports']} differ")
    for field, times in sorted(differing.items()):
        print(f"{times:6d}  {field}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
