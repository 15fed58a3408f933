"""Every fault that can strike at a failpoint, at every failpoint of a cluster: `python -m tests.bench.points CLUSTER`.

Before anything is drawn at random: one run for each fault, point and moment. The fault strikes whichever node first
reaches the point after the moment. A row says what was found, and whether the fault struck; the last line counts them.
With `--bug` the bugs are planted.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.hunt.rows import tried
from harness.scenario.consent import installed
from harness.scenario.registry import load_machines
from harness.scenario.scenario import Scenario, topology
from harness.shrink.case import Case
from nemesis.plan import Plan, Step
from nemesis.registry import PACKAGES
from nemesis.topology import Topology

SECOND = 1_000_000_000
MOMENTS_S = (0.5, 1.5)  # When the fault begins to wait for its point: in the first run of a point, and in another one.
WAITS_NS = SECOND
LASTS_S = 4.0


class Strike(NamedTuple):
    """One run's fault."""

    package: str
    fault: str
    point: str
    at_ns: int


def strikes(place: Topology, names: tuple[str, ...]) -> Iterator[Strike]:
    """All faults of these packages at all points, each at all moments."""
    for point in place.points:
        for package in names:
            for fault in PACKAGES[package].faults:
                if "point" in fault.optional:
                    for moment in MOMENTS_S:
                        yield Strike(package, fault.name, point, int(moment * SECOND))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cluster")
    parser.add_argument("--workload")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bug", action="append", default=[])
    asked = parser.parse_args()
    code = installed(asked.cluster)
    cluster = load_machines(code)
    scenario = Scenario(
        cluster=asked.cluster, workload=asked.workload, seed=asked.seed, time_s=LASTS_S, bugs=tuple(asked.bug)
    )
    place = topology(cluster)
    counts: Counter[str] = Counter()
    for strike in strikes(place, cluster.faults):
        step = Step(
            fault=strike.fault, package=strike.package, at_ns=strike.at_ns, until_ns=strike.at_ns + WAITS_NS,
            targets=place.ids(), args={"point": strike.point},
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as store:
            report = tried(code, Path(store), Case(scenario=scenario, plan=Plan(steps=(step,)))).report
        (fault,) = report.faults
        struck = "struck" if fault.effective else "missed"
        found = ", ".join(each.symptom for each in report.findings) or "nothing"
        counts.update((struck, report.verdict, *({"found"} if report.findings else ())))
        print(
            f"{strike.fault} at {strike.point}, {strike.at_ns / SECOND} s: {struck}, {report.verdict}, {found}",
            flush=True,
        )
    print(dict(counts))
    sys.exit(1 if counts["found"] else 0)


if __name__ == "__main__":
    main()
