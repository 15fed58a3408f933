"""How soon a hunt finds a planted bug, beside drawn seeds: `python -m tests.bench.hunt BUG [--trials 10] [--drawn]`.

Each trial has another seed, and stops at the first finding that breaks a promise. Its row is appended to a file, so
that a later call goes on with the trials that are missing; every call ends with medians and ranges of all of them. Runs
of a hunt are shorter than the drawn ones, so simulated seconds and CPU seconds are the fair comparison.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from statistics import median

import msgspec

from harness.hunt.rows import tried
from harness.hunt.search import Limits, begin, carry_out
from harness.run.pool import LocalPool, results
from harness.scenario.consent import on_command_line
from harness.scenario.left_open import ANY
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario, decide, named
from harness.shrink.case import Case

FAR = 1_000  # Between the first drawn seeds of two trials.


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One trial: how many runs it took, `found` what; None: it gave up."""

    arm: str
    cluster: str
    bug: str
    time_s: float
    seed: int
    runs: int
    found: str | None
    simulated_s: float
    cpu_s: float
    real_s: float


def hunted(scenario: Scenario, seed: int, runs: int, jobs: int) -> tuple[int, str | None]:
    """The number of runs of a hunt with that seed, and the symptom found: one that the correct cluster lacks."""
    with tempfile.TemporaryDirectory() as store:
        code = on_command_line(scenario.cluster)
        begun = begin(scenario, code, Path(store), seed=seed, jobs=jobs, known=(), limits=Limits(runs=runs))
        while True:
            result = carry_out(begun, jobs, lambda so_far: None)
            if result.found is None or result.found.case is None:
                return len(result.rows), None
            symptom = result.found.findings(frozenset(begun.order.known))[0].symptom
            case = result.found.case
            correct = Case(scenario=msgspec.structs.replace(case.scenario, bugs=()), plan=case.plan)
            if symptom not in {each.symptom for each in tried(code, Path(store), correct).report.findings}:
                return len(result.rows), symptom
            print(f"seed {seed}: run {len(result.rows)} shows {symptom} without the bug as well", flush=True)
            order = msgspec.structs.replace(begun.order, known=(*begun.order.known, symptom))
            begun = msgspec.structs.replace(begun, order=order)


def drawn(scenario: Scenario, seed: int, runs: int, jobs: int) -> tuple[int, str | None]:
    """The same of seeds that are drawn, from FAR times the trial's seed on."""
    code = on_command_line(scenario.cluster)
    cluster = load_cluster(code)
    left = iter(range(FAR * seed, FAR * seed + runs))
    made = 0
    with tempfile.TemporaryDirectory() as folder, LocalPool(partial(tried, code, Path(folder)), jobs) as pool:

        def following() -> Case | None:
            number = next(left, None)
            if number is None:
                return None
            own = msgspec.structs.replace(scenario, seed=number)
            own = named(own, cluster.workloads)
            return Case(scenario=own, plan=decide(own, cluster).plan)

        for _, result in results(pool, following):
            if isinstance(result, Exception):
                raise result
            made += 1
            broken = [finding.symptom for finding in result.report.findings if finding.promise]
            if broken:
                return made, broken[0]
    return made, None


ARMS = {"hunt": hunted, "drawn": drawn}


def trial(arm: str, scenario: Scenario, seed: int, runs: int, jobs: int) -> Trial:
    """One trial, measured."""
    began, before = time.monotonic(), _cpu_s()
    made, found = ARMS[arm](scenario, seed, runs, jobs)
    return Trial(
        arm=arm,
        cluster=scenario.cluster,
        bug=scenario.bugs[0],
        time_s=scenario.time_s,
        seed=seed,
        runs=made,
        found=found,
        simulated_s=made * scenario.time_s,
        cpu_s=round(_cpu_s() - before, 1),
        real_s=round(time.monotonic() - began, 1),
    )


def _cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def summary(trials: Iterable[Trial]) -> list[str]:
    """A line for each arm, bug and length: medians and ranges; trials that gave up count with all their runs."""
    groups: dict[tuple[str, str, float], list[Trial]] = {}
    for each in trials:
        groups.setdefault((each.bug, each.arm, each.time_s), []).append(each)
    lines = []
    for (bug, arm, time_s), group in sorted(groups.items()):
        ranges = "  ".join(
            f"{name} {median(values):g} ({min(values):.0f} to {max(values):.0f})"
            for name, values in (
                ("runs", [each.runs for each in group]),
                ("simulated s", [each.simulated_s for each in group]),
                ("CPU s", [each.cpu_s for each in group]),
            )
        )
        hits = sum(each.found is not None for each in group)
        lines.append(f"{bug:<22} {arm:<6} {time_s:g} s each  found in {hits} of {len(group)}  {ranges}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bug")
    parser.add_argument("--cluster", default="ndb")
    parser.add_argument("--drawn", action="store_true", help="seeds that are drawn, instead of a hunt")
    parser.add_argument("--time", type=float, help="seconds of load in each run; 8 of a hunt, 20 of drawn seeds")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3000, help="after which a trial gives up")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", type=Path, default=Path("store/bench-hunt.jsonl"))
    given = parser.parse_args()
    arm = "drawn" if given.drawn else "hunt"
    time_s = given.time or (20.0 if given.drawn else 8.0)
    given.rows.parent.mkdir(parents=True, exist_ok=True)
    text = given.rows.read_bytes() if given.rows.exists() else b""
    trials = [msgspec.json.decode(line, type=Trial) for line in text.splitlines()]
    done = {(each.arm, each.cluster, each.bug, each.time_s, each.seed) for each in trials}
    style = ANY if given.drawn else None
    scenario = Scenario(cluster=given.cluster, bugs=(given.bug,), time_s=time_s, workload=ANY, style=style)
    for seed in range(1, given.trials + 1):
        if (arm, given.cluster, given.bug, time_s, seed) not in done:
            made = trial(arm, scenario, seed, given.runs, given.jobs)
            with given.rows.open("ab") as file:
                file.write(msgspec.json.encode(made) + b"\n")
            trials.append(made)
            print(f"seed {seed}: {made.runs} runs, {made.found}, {made.cpu_s} CPU s", flush=True)
    sys.stdout.writelines(f"{line}\n" for line in summary(trials))


if __name__ == "__main__":
    main()
