"""How small failing runs of the planted bugs get, and what it costs: `python -m tests.bench.shrink FOLDER [BUG...]`.

For each bug the first drawn seed whose plan has at least 15 steps, and whose run of at least 1,000 operations shows
the bug, is shrunk, and its test is carried out with the bug and without. With `--twice` it is shrunk again, from
nothing. Rows go to FOLDER/rows.jsonl; a bug that is there already is not measured again. On a busy machine CPU seconds,
over both cores, say more than seconds.
"""

import re
import resource
import shutil
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from statistics import median

import msgspec

from clusters.ndb import planted
from harness.judging.engines import in_threads
from harness.report.model import Report
from harness.run.carry_out import carry_out
from harness.run.running import prepare
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario, decide
from harness.shrink.case import Size
from harness.shrink.shrink import PLAN_FILE, SCRIPT_FILE, Orders, Shrunk, shrunk

CODE = installed("ndb")
TIME_S, RATE = 40.0, 40.0
STEPS, OPERATIONS, SEEDS = 15, 1_000, 200
TEXTS = (PLAN_FILE, SCRIPT_FILE)
TWICE = "--twice"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one bug; `symptom` is None if no drawn seed showed it."""

    bug: str
    seed: int | None
    drawn: int
    symptom: str | None = None
    before: Size | None = None
    after: Size | None = None
    tries: int = 0
    seconds: float = 0
    cpu_s: float = 0
    is_test_right: bool = False  # It fails with the bug, and passes without.
    is_same_again: bool | None = None  # A second shrink wrote the same plan, script and test; None: there was none.


def red_run(bug: str, store: Path) -> tuple[Report | None, int]:
    """The first run with enough steps and operations that shows the bug, and how many runs were made."""
    cluster, drawn = load_cluster(CODE), 0
    for seed in count():
        scenario = Scenario(cluster="ndb", seed=seed, time_s=TIME_S, rate=RATE, bugs=(bug,))
        if len(decide(scenario, cluster).plan.steps) < STEPS:
            continue
        if drawn == SEEDS:
            return None, drawn
        drawn += 1
        run, _ = prepare(scenario, CODE, store)
        report = carry_out(run, CODE, in_threads, is_traced=False)
        if report.findings and sum(report.operations.values()) >= OPERATIONS:
            return report, drawn
    raise AssertionError("seeds do not end")


def measured(bug: str, store: Path, *, is_twice: bool) -> Row:
    """Find that bug, and shrink the run."""
    report, drawn = red_run(bug, store)
    if report is None or report.run is None:
        return Row(bug=bug, seed=None, drawn=drawn)
    run = Path(report.run)
    untouched = shutil.copytree(run, store / "again" / bug / "runs" / run.name)
    started, used = time.monotonic(), _cpu_s()
    done = _shrunk(run)
    seconds, cpu_s = time.monotonic() - started, _cpu_s() - used
    return Row(
        bug=bug,
        seed=report.seed,
        drawn=drawn,
        symptom=done.symptom,
        before=done.before,
        after=done.after,
        tries=done.tries,
        seconds=round(seconds, 1),
        cpu_s=round(cpu_s, 1),
        is_test_right=_is_right(Path(done.test)),
        is_same_again=_texts(_shrunk(untouched)) == _texts(done) if is_twice else None,
    )


def _shrunk(run: Path) -> Shrunk:
    return shrunk(Orders(run=run, code=CODE), in_threads, lambda *_: None)


def _texts(done: Shrunk) -> list[bytes]:
    test = Path(done.test)
    return [test.name.encode(), *(path.read_bytes() for path in (test, *(test.parent / name for name in TEXTS)))]


def _is_right(test: Path) -> bool:
    """True if the test fails as it is, and passes once it names no bug."""
    without = test.with_name("test_without.py")
    without.write_text(re.sub(r"(?m)^BUGS = .*$", "BUGS = ()", test.read_text(encoding="utf-8")), encoding="utf-8")
    exit_codes = []
    for each in (test, without):
        options = ["-q", "-p", "no:cacheprovider", f"--rootdir={each.parent}"]
        command = [sys.executable, "-m", "pytest", *options, str(each)]
        exit_codes.append(subprocess.run(command, capture_output=True, check=False).returncode)
    return exit_codes == [1, 0]


def _cpu_s() -> float:
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def _line(row: Row) -> str:
    if row.before is None or row.after is None:
        return f"{row.bug:<26} not shown by {row.drawn} drawn runs"
    before, after = row.before, row.after
    sizes = f"{before.steps:>3} to {after.steps:<3} steps {before.operations:>5,} to {after.operations:<4} operations"
    cost = f"{row.tries:>5} tries {row.seconds:>6} s {row.cpu_s:>6} CPU s"
    again = {True: "  the same again", False: "  NOT THE SAME AGAIN", None: ""}[row.is_same_again]
    wrong = ("" if row.is_test_right else "  ITS TEST IS WRONG") + again
    return f"{row.bug:<26} seed {row.seed:<4} {sizes} {cost}{wrong}"


def main() -> None:
    """Measure what is not there yet, and show all."""
    given = [each for each in sys.argv[1:] if each != TWICE]
    folder = Path(given[0])
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "rows.jsonl"
    rows = [msgspec.json.decode(line, type=Row) for line in file.read_bytes().splitlines()] if file.exists() else []
    for bug in given[1:] or planted.BUGS:
        if bug not in {row.bug for row in rows}:
            row = measured(bug, folder / "store", is_twice=TWICE in sys.argv)
            rows.append(row)
            with file.open("ab") as out:
                out.write(msgspec.json.encode(row) + b"\n")
            print(_line(row), flush=True)
    print("\n".join(map(_line, rows)))
    done = [row for row in rows if row.after is not None and row.before is not None]
    if done:
        steps, operations = (median(getattr(row.after, name) for row in done) for name in ("steps", "operations"))
        seconds, cpu_s = (median(getattr(row, name) for row in done) for name in ("seconds", "cpu_s"))
        print(f"medians: {steps:g} steps, {operations:g} operations, {seconds:g} s, {cpu_s:g} CPU s")


if __name__ == "__main__":
    main()
