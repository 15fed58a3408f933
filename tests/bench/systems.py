"""Real systems in containers, at length: `python -m tests.bench.systems [RUNS]`; by default 20 runs of each version.

1. etcd's versions run for 30 s under all their faults. Only what docs/track-record.md has of a version may be found.
2. Servers of etcd and PostgreSQL lose power ten times in each of RUNS / 4 runs: how often that took effect is counted.
3. In the end nothing may be left: no container, network, volume, or loop device.

Exits with 1 if something else was found, if a power failure had no effect, or if something was left; 4 if a run failed.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec
from pyarrow import parquet

from clusters.etcd.service import VERSIONS
from harness.core.record import Json
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.engine.labels import RUN
from nemesis.plan import Plan, Step
from nemesis.validation import plan_to_json

RUNS: Final = 20
SECOND: Final = 1_000_000_000
EVERY_S, AWAY_S, FAILURES = 6, 1, 10
# By version: the promises that it is known to break.
KNOWN: Final = {"3.4.23": {"ETCD-16", "ETCD-19"}, "3.5.1": {"ETCD-16", "ETCD-19"}}
POWERED: Final = {"etcd": (("n1",), ("n2",), ("n3",), ("n1", "n2", "n3")), "postgres": (("n1",), ("n2",), ("n1", "n2"))}


def power_plan(groups: tuple[tuple[str, ...], ...]) -> Plan:
    """Ten power failures, one after the other, of these groups of nodes in turn."""
    starts = [(2 + EVERY_S * number) * SECOND for number in range(FAILURES)]
    return Plan(
        steps=tuple(
            Step(
                fault="crash",
                package="power",
                at_ns=at_ns,
                until_ns=at_ns + AWAY_S * SECOND,
                targets=groups[number % len(groups)],
                args={"disk": "torn" if number % 5 == 4 else "lost"},
            )
            for number, at_ns in enumerate(starts)
        )
    )


def carried_out(folder: Path, cluster: str, seed: int, *options: str) -> tuple[int, set[str], list[int]]:
    """The exit code of a run, the promises that it found violated, and the effect of each of its faults."""
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


def left() -> list[str]:
    """Everything of ours that is in the engine, and loop devices that have a file."""
    engine = connect()
    label = {"label": RUN}
    found = [str(each["Names"]) for each in engine.api.containers(all=True, filters=label)]
    found += [str(each["Name"]) for each in engine.api.networks(filters=label)]
    found += [str(each["Name"]) for each in engine.api.volumes(filters=label)["Volumes"] or []]
    engine.close()
    return [*found, *map(str, Path("/sys/block").glob("loop*/loop/backing_file"))]


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    before, code = left(), 0
    for version in VERSIONS:
        codes: Counter[int] = Counter()
        for seed in range(1, runs + 1):
            with tempfile.TemporaryDirectory(prefix="seamark-systems-") as folder:
                options = ("--time", "30", "--option", f"version={version}")
                ended, violated, _ = carried_out(Path(folder), "etcd", seed, *options)
            codes[ended] += 1
            unknown = violated - KNOWN.get(version, set())
            code = max(code, 1 if unknown else 0, 4 if ended not in (0, 1, 3) else 0)
            if unknown:
                print(f"etcd {version}, seed {seed}: {', '.join(sorted(unknown))} violated", flush=True)
        print(f"etcd {version}: exit codes {dict(sorted(codes.items()))} in {runs} runs", flush=True)
    for cluster, groups in POWERED.items():
        effects: list[int] = []
        for seed in range(1, max(1, runs // 4) + 1):
            with tempfile.TemporaryDirectory(prefix="seamark-systems-") as folder:
                plan = Path(folder) / "plan.json"
                plan.write_text(plan_to_json(power_plan(groups)), encoding="utf-8")
                length = str(EVERY_S * FAILURES + 4)
                shape = ("--time", length, "--rate", "60", "--plan", str(plan))
                ended, _, seen = carried_out(Path(folder), cluster, seed, *shape)
            effects += seen
            code = max(code, 4 if ended not in (0, 1, 3) else 0)
        print(f"{cluster}: {sum(map(bool, effects))} of {len(effects)} power failures took effect", flush=True)
        code = max(code, 0 if effects and all(effects) else 1)
    remains = [each for each in left() if each not in before]
    print(f"left behind: {', '.join(remains) or 'nothing'}")
    return max(code, 1 if remains else 0)


if __name__ == "__main__":
    sys.exit(main())
