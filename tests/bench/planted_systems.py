"""The planted bugs of real systems: each with a run that finds it, and the same run without it.

`python -m tests.bench.planted_systems [CLUSTER ...]` carries these out. Exits with 1 if a bug was not found, or if
something was found without it; 4 if a run failed.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from nemesis.plan import Plan, Step
from nemesis.validation import plan_to_json
from tests.bench.carried_out import carried_out

SECOND: Final = 1_000_000_000


def step(fault: str, package: str, at_s: int, until_s: int, *targets: str, **args: str) -> Step:
    return Step(
        fault=fault,
        package=package,
        at_ns=at_s * SECOND,
        until_ns=until_s * SECOND,
        targets=targets,
        args=dict[str, int | str](args),
    )


def alone(node: str, at_s: int) -> Step:
    """A member that reaches no other for three seconds, but answers clients."""
    others = [other for other in ("n1", "n2", "n3") if other != node]
    links = [link for other in others for link in (f"{node}>{other}", f"{other}>{node}")]
    return step("cut", "partition", at_s, at_s + 3, *links)


CRASHES: Final = tuple(step("crash", "crash", at_s, at_s + 1, node) for at_s, node in ((3, "s1"), (6, "s2")))
QUICK_CRASHES: Final = tuple(step("crash", "crash", 1 + n, 2 + n, ("s1", "s2")[n % 2]) for n in range(8))


class Planted(NamedTuple):
    """A bug, and the run that finds it."""

    cluster: str
    bug: str
    steps: tuple[Step, ...]
    options: tuple[str, ...] = ()


NEWEST: Final = ("--option", "version=3.7.3")
BUGS: Final = (
    Planted("etcd", "stale-reads", (alone("n1", 2), alone("n2", 6)), (*NEWEST, "--workload", "rw-register")),
    Planted("etcd", "skip-missed", CRASHES, NEWEST),
    Planted("etcd", "no-fsync", (step("crash", "power", 3, 4, "n1", "n2", "n3", disk="lost"),), NEWEST),
    Planted("postgres", "confirm-before-store", QUICK_CRASHES),
    Planted("postgres", "fsync-off", (step("crash", "power", 3, 4, "n1", "n2", disk="lost"),)),
    Planted("nats", "ack-first", QUICK_CRASHES),
    Planted("nats", "blind-counter", (), ("--workload", "counter")),
    Planted("redis", "early-ack", QUICK_CRASHES),
    Planted("redis", "no-watch", (), ("--workload", "cas-register")),
    Planted("redis", "no-file", (step("crash", "crash", 3, 4, "n1", disk="kept"),)),
)


def found(planted: Planted, options: Sequence[str]) -> tuple[int, set[str]]:
    """The exit code of the bug's run with those options, and the promises that it found violated."""
    with tempfile.TemporaryDirectory(prefix="seamark-planted-") as folder:
        plan = Path(folder) / "plan.json"
        plan.write_text(plan_to_json(Plan(steps=planted.steps)), encoding="utf-8")
        shape = ("--time", "10", "--rate", "100", "--plan", str(plan), *planted.options, *options)
        code, violated, _ = carried_out(Path(folder), planted.cluster, 1, *shape)
    return code, violated


def main(*clusters: str) -> int:
    worst = 0
    for planted in BUGS:
        if clusters and planted.cluster not in clusters:
            continue
        with_bug, violated = found(planted, ("--bug", planted.bug))
        without, wrong = found(planted, ())
        told = f"found, {', '.join(sorted(violated))}" if violated else "NOT FOUND"
        clean = f"NOT CLEAN, {', '.join(sorted(wrong))}" if wrong else "clean"
        print(
            f"{planted.cluster} {planted.bug}: exit {with_bug}, {told}; without it: exit {without}, {clean}", flush=True
        )
        worst = max(worst, int(not violated or bool(wrong)), 4 if {with_bug, without} - {0, 1, 3} else 0)
    return worst


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
