"""Prints who finds the planted bugs: the graph of watermarks, the rules of streams, other checks, clients alone.

Run as `python -m tests.bench.opinions`, with names of bugs behind it for those only. The schedules are those of
tests/planted, NDB's under four seeds each, the tutorial's under ten. Every history is judged twice: as what it is, a
run of its cluster; and as a checker sees it that knows of client transactions only, and holds them to strict
serializability. The same schedules without the bug are judged so, too: a cluster may promise less than that, and then
there are cycles in correct runs.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from checkers.engine.datasets import LocalEngine
from checkers.watermarks.check import LOCKED as WATERMARKS_LOCKED
from checkers.watermarks.second_opinion import CHECKER as OPINIONS
from checkers.words.checks import STREAMS, WATERMARKS
from clusters.ndb.checks.cuts import CHECKER as CUTS
from harness.core.record import Footer
from harness.judging.engines import in_threads
from harness.judging.judge import judge
from harness.record.formats.load import load
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import HISTORY
from harness.report.markdown import code, table
from harness.report.model import Report
from harness.run.running import prepare
from harness.run.single import judge_run
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from tests.planted.schedules import schedule
from tests.planted.test_bugs import BUGS as OF_TUTORIAL
from tests.planted.test_ndb import CASES as OF_NDB
from tests.scenario.simulated import Simulated

MODEL: Final = "strict-serializable"
NDB_SEEDS: Final = (12, 13, 23, 27)
TUTORIAL_SEEDS: Final = tuple(range(10))
GRAPH: Final = (WATERMARKS, WATERMARKS_LOCKED)
RULES: Final = (STREAMS, CUTS)
HEAD: Final = ("bug", "graph of watermarks", "stream rules", "found by", "other checks", "client transactions alone")


@dataclass(frozen=True, slots=True)
class Row:
    """What was found of one bug: in how many histories each anomaly, and in how many each group of checks anything."""

    bug: str
    graph: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    who: Counter[str] = field(default_factory=Counter)
    clients: Counter[str] = field(default_factory=Counter)
    clients_without: Counter[str] = field(default_factory=Counter)
    disagreements: Counter[str] = field(default_factory=Counter)

    def add(self, report: Report, clients: Iterable[str], clients_without: Iterable[str]) -> None:
        """Count one history."""
        broken = [finding for finding in report.findings if finding.promise is not None]
        graph = {finding.anomaly for finding in broken if finding.checker in GRAPH}
        rules = {finding.anomaly for finding in broken if finding.checker in RULES}
        others = {finding.anomaly for finding in broken if finding.checker not in (*GRAPH, *RULES)}
        self.graph.update(sorted(graph))
        self.rules.update(sorted(rules))
        self.others.update(sorted(others))
        self.who[_who(is_graph=bool(graph), is_rules=bool(rules), is_other=bool(others))] += 1
        self.clients.update(clients)
        self.clients_without.update(clients_without)
        self.disagreements.update(_disagreements(report))

    def cells(self) -> tuple[str, ...]:
        """One line of the table. What clients alone find as often without the bug says nothing of it."""
        more = Counter({name: count for name, count in self.clients.items() if count > self.clients_without[name]})
        same = [code(name) for name in sorted(self.clients) if name not in more]
        found = ", ".join(
            f"{code(name)} {count}" + (f" (without it {without})" if (without := self.clients_without[name]) else "")
            for name, count in sorted(more.items())
        )
        result = f"{found or '-'}; no more than without it: {', '.join(same)}" if same else found or "-"
        who = ", ".join(f"{name} {count}" for name, count in self.who.most_common())
        return (code(self.bug), _told(self.graph), _told(self.rules), who, _told(self.others), result)


def _who(*, is_graph: bool, is_rules: bool, is_other: bool) -> str:
    if is_graph and is_rules:
        return "both"
    return "graph only" if is_graph else "rules only" if is_rules else "others only" if is_other else "nobody"


def _disagreements(report: Report) -> Iterator[str]:
    opinion = report.facts.get(OPINIONS)
    for group in ("only_graph", "only_rules"):
        alone = opinion.get(group) if isinstance(opinion, Mapping) else None
        if isinstance(alone, Mapping):
            yield from (f"{name}, {group.replace('_', ' ')}" for name, why in alone.items() if why == "disagreement")


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{code(name)} {count}" for name, count in sorted(counts.items())) or "-"


def cases(bugs: Sequence[str]) -> Iterator[tuple[str, list[tuple[Scenario, Plan | None]]]]:
    """Each bug with its scenarios."""
    for bug, (nemesis, _, _) in OF_TUTORIAL.items():
        if not bugs or bug in bugs:
            runs = [
                Scenario(cluster="tutorial", seed=seed, time_s=12, nemesis=nemesis, bugs=(bug,))
                for seed in TUTORIAL_SEEDS
            ]
            yield bug, [(scenario, None) for scenario in runs]
    for bug in OF_NDB:
        if not bugs or bug in bugs:
            case = schedule("ndb", bug)
            runs = [msgspec.structs.replace(case.scenario, seed=seed, bugs=(bug,)) for seed in NDB_SEEDS]
            yield bug, [(scenario, case.plan) for scenario in runs]


def recorded(scenario: Scenario, plan: Plan | None, store: Path) -> Path:
    """The run of that scenario, simulated."""
    run, _ = prepare(scenario, installed(scenario.cluster), store, plan)
    simulated = Simulated(scenario, plan)
    write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
    return run


def of_clients(run: Path, store: Path) -> list[str]:
    """What somebody finds in that run who knows of client transactions only."""
    report = judge(load(run, store), LocalEngine(), model=MODEL)
    return sorted({finding.anomaly for finding in report.findings})


def main() -> None:
    rows = []
    for bug, runs in cases(sys.argv[1:]):
        row = Row(bug)
        for scenario, plan in runs:
            with tempfile.TemporaryDirectory() as folder:
                store = Path(folder)
                run = recorded(scenario, plan, store)
                sound = recorded(msgspec.structs.replace(scenario, bugs=()), plan, store / "sound")
                row.add(judge_run(run, in_threads), of_clients(run, store), of_clients(sound, store))
        print(" | ".join(row.cells()), file=sys.stderr, flush=True)
        rows.append(row)
    print("\n".join(table(HEAD, [row.cells() for row in rows])))
    disagreements = sum((row.disagreements for row in rows), Counter[str]())
    print(f"\nDisagreements: {_told(disagreements) if disagreements else 'none'}.")


if __name__ == "__main__":
    main()
