"""etcd while its members change, in each version: `python -m tests.bench.changing_members [VERSION ...]`.

A member is removed and added again, another one replaced, all restart in turn; and where a later release follows, all
are upgraded to it. Prints the effect of each step. Exits with 1 if a step had none, or if a promise is broken that is
not known for the version; 4 if a run failed.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from clusters.etcd.service import UPGRADES, VERSIONS
from nemesis.plan import Plan, Step
from nemesis.validation import plan_to_json
from tests.bench.carried_out import carried_out, effects_in

SECOND: Final = 1_000_000_000
# https://github.com/etcd-io/etcd/issues/15220, and what follows from it.
KNOWN: Final = {"3.4.23": {"ETCD-16", "ETCD-19"}, "3.5.1": {"ETCD-16", "ETCD-19"}}
ALL: Final = ("n1", "n2", "n3")
LENGTH_S: Final = 60


def step(fault: str, package: str, at_s: int, until_s: int, *targets: str) -> Step:
    return Step(fault=fault, package=package, at_ns=at_s * SECOND, until_ns=until_s * SECOND, targets=targets)


def plan_for(version: str) -> Plan:
    steps = [
        step("remove", "membership", 3, 7, "n3"),
        step("replace", "membership", 16, 22, "n1"),
        step("restart", "rolling-restart", 28, 37, *ALL),
    ]
    if version in UPGRADES:
        steps.append(step("upgrade", "rolling-upgrade", 43, 54, *reversed(ALL)))
    return Plan(steps=tuple(steps))


def main(*versions: str) -> int:
    worst = 0
    for version in versions or VERSIONS:
        with tempfile.TemporaryDirectory(prefix="seamark-members-") as folder:
            plan = Path(folder) / "plan.json"
            plan.write_text(plan_to_json(plan_for(version)), encoding="utf-8")
            shape = ("--time", str(LENGTH_S), "--rate", "60", "--plan", str(plan), "--option", f"version={version}")
            code, violated, _ = carried_out(Path(folder), "etcd", 1, *shape)
            effects = effects_in(Path(folder) / "etcd")
        unknown = violated - KNOWN.get(version, set())
        told = "; ".join(f"{kind} {count}: {note}" for kind, count, note in effects)
        print(f"etcd {version}: exit {code}, violated: {json.dumps(sorted(violated))}; {told}", flush=True)
        is_wrong = unknown or not all(count for _, count, _ in effects)
        worst = max(worst, 1 if is_wrong else 0, 4 if code not in (0, 1, 3) else 0)
    return worst


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
