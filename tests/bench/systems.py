"""Real systems in containers, at length: `python -m tests.bench.systems [PART ...] [SYSTEM ...] [RUNS]`.

By default all parts, all systems, 20 runs. A SYSTEM is a cluster or an option of one: `etcd`, `3.7.3`, `valkey`.

faults   each system, etcd in each of its versions, runs for 30 s under all its faults, RUNS times. Only what
         docs/track-record.md or docs/findings has of a version may be found.
power    servers of etcd and PostgreSQL, with and without fsync, lose power ten times in each of RUNS / 4 runs: it is
         counted how often that took effect.
planted  each planted bug is found, and the same run without it is clean.
members  members of etcd leave, join, restart and are upgraded, in each version.
rot      a server of etcd or NATS finds a bit of its data flipped, or a file's end gone, in each of RUNS / 4 runs.
many     RUNS * 5 / 2 short runs under any faults, one after the other.

In the end nothing may be left: no container, network, volume, or loop device. Exits with 1 if something else was found,
if a power failure had no effect, if a short run tested nothing, or if something was left; 4 if a run failed.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from clusters.etcd.service import VERSIONS
from clusters.redis.service import VERSIONS as SERVERS
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.engine.sweeper import left_behind
from nemesis.plan import Plan, Step
from nemesis.validation import plan_to_json
from tests.bench import changing_members, planted_systems
from tests.bench.carried_out import carried_out
from tests.loops import abandoned

RUNS: Final = 20
VERDICTS: Final = (0, 1, 2, 3)  # The exit codes of runs that were not the harness's own failure.
SECOND: Final = 1_000_000_000
EVERY_S, AWAY_S, FAILURES = 6, 1, 10
KNOWN: Final = {"3.4.23": {"ETCD-16", "ETCD-19"}, "3.5.1": {"ETCD-16", "ETCD-19"}}
NEWEST: Final = ("--option", "version=3.7.3")
# Each system with its options, and the promises that it is known to break.
SYSTEMS: Final = (
    *(("etcd", ("--option", f"version={version}"), KNOWN.get(version, set())) for version in VERSIONS),
    ("nats", (), {"NATS-13"}),
    *(
        (cluster, ("--option", f"server={server}"), set[str]())
        for cluster in ("redis", "redis-sentinel")
        for server in SERVERS
    ),
)
# The settings that promise safety, where the first ones do not.
SAFE: Final = {"etcd": NEWEST, "nats": ("--option", "sync=always")}
ALL_OF_ETCD: Final = ("n1", "n2", "n3")
# Each with its options, and the groups that lose power in turn. Without fsync a single member of etcd may end for good.
POWERED: Final = (
    ("etcd", (), (("n1",), ("n2",), ("n3",), ALL_OF_ETCD)),
    ("etcd", (*NEWEST, "--bug", "no-fsync"), (ALL_OF_ETCD,)),
    ("postgres", (), (("n1",), ("n2",), ("n1", "n2"))),
    ("postgres", ("--bug", "fsync-off"), (("n1",), ("n2",), ("n1", "n2"))),
)


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


def left() -> list[str]:
    """What harnesses that have ended left in the engine, and loop devices that none holds any more."""
    engine = connect()
    found = [f"{each.kind} {each.name}" for each in left_behind(engine)]
    engine.close()
    return [*found, *sorted(abandoned())]


def under_faults(runs: int, *nemesis: str, clusters: Sequence[str] = ()) -> int:
    worst = 0
    for cluster, options, known in SYSTEMS:
        if not is_chosen(cluster, options) or (clusters and cluster not in clusters):
            continue
        codes: Counter[int] = Counter()
        for seed in range(1, runs + 1):
            with tempfile.TemporaryDirectory(prefix="seamark-systems-") as folder:
                shape = ("--time", "30", *nemesis, *options)
                ended, violated, _ = carried_out(Path(folder), cluster, seed, *shape)
            codes[ended] += 1
            unknown = violated - known
            worst = max(worst, 1 if unknown else 0, 4 if ended not in (0, 1, 3) else 0)
            if unknown:
                print(f"{cluster} {' '.join(options)} seed {seed}: {', '.join(sorted(unknown))} violated", flush=True)
        print(f"{cluster} {' '.join(options)}: exit codes {dict(sorted(codes.items()))} in {runs} runs", flush=True)
    return worst


def names_of(cluster: str, options: Sequence[str]) -> set[str]:
    """The words that choose a system on the command line."""
    return {cluster, *(option.partition("=")[2] for option in options if "=" in option)}


def is_chosen(cluster: str, options: Sequence[str]) -> bool:
    """True if the command line names no system, or this one."""
    names = {word for word in sys.argv[1:] if word not in PARTS and not word.isdigit()}
    return not names or bool(names & names_of(cluster, options))


def without_power(runs: int) -> int:
    worst = 0
    for cluster, options, groups in POWERED:
        effects: list[int] = []
        for seed in range(1, max(1, runs // 4) + 1):
            with tempfile.TemporaryDirectory(prefix="seamark-systems-") as folder:
                plan = Path(folder) / "plan.json"
                plan.write_text(plan_to_json(power_plan(groups)), encoding="utf-8")
                length = str(EVERY_S * FAILURES + 4)
                shape = ("--time", length, "--rate", "60", "--plan", str(plan), *options)
                ended, _, seen = carried_out(Path(folder), cluster, seed, *shape)
            effects += seen
            worst = max(worst, 4 if ended not in (0, 1, 3) else 0)
        taken = sum(map(bool, effects))
        print(f"{cluster} {' '.join(options)}: {taken} of {len(effects)} power failures took effect", flush=True)
        worst = max(worst, 0 if effects and all(effects) else 1)
    return worst


def one_after_the_other(runs: int) -> int:
    count = runs * 5 // 2
    codes: Counter[tuple[str, int]] = Counter()
    for seed in range(1, count + 1):
        with tempfile.TemporaryDirectory(prefix="seamark-systems-") as folder:
            cluster = ("etcd", "nats", "redis", "redis-sentinel")[seed % 4]
            options = SAFE.get(cluster, ())
            ended, _, _ = carried_out(Path(folder), cluster, seed, "--time", "12", *options)
        codes[cluster, ended] += 1
    told = ", ".join(f"{number} of {cluster} exit {code}" for (cluster, code), number in sorted(codes.items()))
    print(f"{count} short runs: {told}", flush=True)
    seen = {code for _, code in codes}
    return 4 if seen - set(VERDICTS) else int(seen != {0})


PARTS: Final = {
    "faults": under_faults,
    "power": without_power,
    "planted": lambda _: planted_systems.main(),
    "rot": lambda runs: under_faults(max(1, runs // 4), "--nemesis", "bit-rot", clusters=("etcd", "nats")),
    "members": lambda _: changing_members.main(),
    "many": one_after_the_other,
}


def main() -> int:
    known = {name for cluster, options, _ in SYSTEMS for name in names_of(cluster, options)}
    unknown = [word for word in sys.argv[1:] if word not in {*PARTS, *known} and not word.isdigit()]
    if unknown:
        print(f"no {', '.join(unknown)}; there are {', '.join((*PARTS, *sorted(known)))}", file=sys.stderr)
        return 64
    chosen = [word for word in sys.argv[1:] if word in PARTS] or list(PARTS)
    runs = next((int(word) for word in sys.argv[1:] if word.isdigit()), RUNS)
    before = left()
    worst = max(PARTS[part](runs) for part in chosen)
    remains = [each for each in left() if each not in before]
    print(f"left behind: {', '.join(remains) or 'nothing'}")
    return max(worst, 1 if remains else 0)


if __name__ == "__main__":
    sys.exit(main())
