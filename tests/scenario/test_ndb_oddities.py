"""Runs of the correct NDB that show odd things, which the records prove, and of which no check says anything.

The numbers are those of the specification's list of legal observations, N4. Each run has its faults scripted and its
parameters fixed; the oracles have nothing to say about it either.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from clusters.ndb.cluster import Ndb
from clusters.ndb.shape import DATA_NODES, MS
from harness.core.record import Complete, Footer, State
from harness.judging.engines import in_threads
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import HISTORY, write_run_file
from harness.report.model import Report
from harness.run.running import prepare
from harness.run.single import judge_run
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario, decide
from nemesis.plan import Plan, Step
from tests.oracles.ndb import complaints, final_lists
from tests.oracles.ndb_records import GCI_BITS, Observed, number
from tests.scenario.simulated import SECOND, Simulated

PARAMETERS = {
    "epoch_ms": 20,
    "gci_ms": 400,
    "suspect_ms": 300,
    "lock_ms": 200,
    "lag_ms": 2000,
    "max_buffered_rows": 200,
    "event_buffer": 4000,
    "nap_permille": 0,
}
FROM_S1 = tuple(f"s1>{node}" for node in DATA_NODES)
TO_CLIENTS = tuple(f"{node}>client" for node in DATA_NODES)
BETWEEN = tuple(link for a in ("d1", "d3") for b in ("d2", "d4") for link in (f"{a}>{b}", f"{b}>{a}"))
ARBITRATION = tuple(link for node in DATA_NODES for link in (f"{node}>m1", f"m1>{node}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """A run: its faults, and how its parameters differ from PARAMETERS; or both as the seed draws them."""

    steps: tuple[Step, ...] = ()
    parameters: dict[str, int] = field(default_factory=dict)
    seed: int = 0
    workload: str = "ndb-mix"
    bugs: tuple[str, ...] = ()
    time_s: float = 6
    rate: float = 100
    clients: int | None = None
    is_drawn: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """What it came to."""

    run: Simulated
    observed: Observed
    report: Report


def step(fault: str, package: str, at_ms: int, until_ms: int, *targets: str, **arguments: int | str) -> Step:
    return Step(
        fault=fault, package=package, at_ns=at_ms * MS, until_ns=until_ms * MS, targets=targets, args={**arguments}
    )


def judged(odd: Odd, store: Path) -> Judged:
    cluster, plan = Ndb(), None if odd.is_drawn else Plan(steps=odd.steps)
    if not odd.is_drawn:
        values = PARAMETERS | odd.parameters
        cluster.parameters = tuple(
            msgspec.structs.replace(each, low=values[each.name], high=values[each.name]) for each in cluster.parameters
        )
    scenario = Scenario(
        cluster="ndb", seed=odd.seed, time_s=odd.time_s, rate=odd.rate, workload=odd.workload, bugs=odd.bugs
    )
    if odd.clients is not None:
        scenario = msgspec.structs.replace(scenario, clients=odd.clients)
    folder, run_file = prepare(scenario, installed(scenario.cluster), store, plan)
    decided = decide(scenario, cluster, plan)
    run_file = msgspec.structs.replace(
        run_file,
        parameters=decided.settings.parameters | decided.shape,
        bounds=cluster.bounds(decided.settings),
    )
    write_run_file(folder, run_file)
    run = Simulated(scenario, plan, cluster)
    write_history([*run.evidence, Footer(0, run.reason, run.unseed)], folder / HISTORY)
    return Judged(run, Observed(run.evidence), judge_run(folder, in_threads))


LATE_ROUNDS = step("delay", "slow-link", 200, 7800, "d1>d3", latency_ns=30 * MS)
LOCKED = Odd(
    steps=(LATE_ROUNDS,),
    parameters={"epoch_ms": 10, "lock_ms": 100},
    seed=7,
    workload="list-append-locked",
    time_s=8,
    rate=150,
)
RUNS = {
    "quiet": Odd(),
    "committed reads": Odd(workload="list-append", time_s=8),
    "locked reads": LOCKED,
    "appends twice": Odd(workload="churn", time_s=4),
    "all crash": Odd(steps=(step("crash", "crash", 3000, 3500, *DATA_NODES),), parameters={"gci_ms": 1000}),
    "out of buffer": Odd(
        steps=(
            step("stall", "slow-subscriber", 2000, 3400, "d2>s1", "s1>d2", "s1>d1"),
            step("crash", "crash", 2800, 4000, "d2"),
        ),
        parameters={"max_buffered_rows": 8, "lag_ms": 3000},
    ),
    "slow user": Odd(parameters={"event_buffer": 50, "nap_permille": 100}),
    "lagging": Odd(steps=(step("stall", "slow-subscriber", 1500, 5000, *FROM_S1),), parameters={"lag_ms": 500}),
    "no side goes on": Odd(steps=(step("cut", "partition", 2000, 3500, *BETWEEN, *ARBITRATION),)),
    "coordinator dies": Odd(steps=(step("crash", "crash", 2000, 4000, "d1", point="before-commit-answer"),)),
    # It had a false gap once: the peer, brought in anew, spoke for sessions in an epoch that was not its own any more.
    "seed 130": Odd(is_drawn=True, seed=130, workload="list-append", time_s=10),
    # The master of the restart dies a millisecond before it installs the view in which the others already serve.
    "master dies": Odd(
        steps=(
            step("pause", "pause", 504, 1087, *DATA_NODES, "m1", point="before-prepare-sent"),
            step("crash", "crash", 1470, 1955, *DATA_NODES),
            step("crash", "crash", 2134, 2631, "d2"),
        ),
        parameters={
            "epoch_ms": 48,
            "gci_ms": 771,
            "suspect_ms": 500,
            "lock_ms": 230,
            "lag_ms": 3000,
            "max_buffered_rows": 68,
            "nap_permille": 15,
        },
        seed=725480078,
        clients=8,
    ),
    "late answers": Odd(steps=(step("delay", "slow-link", 1000, 4000, *TO_CLIENTS, latency_ns=300 * MS),)),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judged]:
    store = tmp_path_factory.mktemp("odd")
    return {name: judged(odd, store) for name, odd in RUNS.items()}


# What was seen. Each counts how often.


def edges_back(odd: Judged) -> int:
    """4: reads of writers which miss an element that was committed in an older epoch than their own."""
    return sum(is_back for is_back in anti_dependencies(odd.observed))


def anti_dependencies(run: Observed) -> Iterator[bool]:
    """Each from a writer that read a key to the one that appended the next element; does it lead to an older epoch?"""
    final = final_lists(run)
    for reader in run.placed:
        for key, seen in reader.reads:
            if final.get(key, [])[: len(seen)] != seen:
                continue  # It saw what was lost.
            behind = (run.writer[key, value] for value in final[key][len(seen) :])
            writer = next((each for each in behind if each is not reader and each.epoch is not None), None)
            if writer is not None and writer.epoch is not None and reader.epoch is not None:
                yield writer.epoch < reader.epoch


def numbers_out_of_order(odd: Judged) -> int:
    """5: transaction numbers do not follow the epochs."""
    result = [(t.epoch, t.transid) for t in odd.observed.placed if t.transid is not None and t.epoch is not None]
    return sum(one[0] < other[0] and one[1] > other[1] for one in result for other in result)


def epochs_at_once(odd: Judged) -> int:
    """5: epochs beyond the first of those that are released at one moment."""
    marks = Counter((event.subscriber, event.time_ns) for event in odd.run.events("watermark"))
    return sum(count - 1 for count in marks.values())


def long_epochs(odd: Judged) -> int:
    """5: epochs that took much longer than the time between them."""
    at_ns = [event.time_ns for event in odd.run.events("watermark") if event.subscriber == "s1"]
    return sum(later - earlier > 5 * PARAMETERS["epoch_ms"] * MS for earlier, later in pairwise(at_ns))


def empty_epochs(odd: Judged) -> int:
    """5: epochs in which nothing happened."""
    return sum(not stretch.rows for stretch in odd.observed.stretches)


def jumps(odd: Judged) -> int:
    """5: restarts that jump over numbers of checkpoints."""
    return sum(each.first_epoch >> GCI_BITS > each.restored + 1 for each in odd.observed.restarts)


def restarts_without_master(odd: Judged) -> int:
    """5: restarts that only others report, as their master died."""
    reported: dict[int, set[str]] = {}
    for state in odd.run.evidence:
        if isinstance(state, State) and state.object == "restart" and state.key != 0:
            reported.setdefault(number(state.key), set()).add(state.node)
    return sum("d2" not in nodes for nodes in reported.values())


def merged_changes(odd: Judged) -> int:
    """6: appends that are no event, as the same transaction has appended to that key again."""
    return sum(len(t.appends) - len(t.final) for t in odd.observed.placed)


def events_before_answers(odd: Judged) -> int:
    """7: rows that were delivered before their transaction was answered."""
    answered = {
        record.index: seq
        for seq, record in enumerate(odd.run.evidence)
        if isinstance(record, Complete) and record.outcome == "ok"
    }
    rows = {id(row): seq for seq, row in enumerate(odd.run.evidence)}
    return sum(
        answered.get(odd.observed.writer[number(row.key), number(row.value)].index, -1) > rows[id(row)]
        for row in odd.run.events("row")
    )


def void_transactions(odd: Judged) -> int:
    """8: what was acknowledged, and lost as it was not saved."""
    last = odd.observed.restarts[-1].number
    return sum(t.outcome == "ok" and odd.observed.is_void(t, last) for t in odd.observed.placed)


def void_rows(odd: Judged) -> int:
    """8: rows of such transactions that subscribers had got."""
    run, last = odd.observed, odd.observed.restarts[-1].number
    void = {t.index for t in run.placed if run.is_void(t, last)}
    return sum(run.writer[number(row.key), number(row.value)].index in void for row in odd.run.events("row"))


def gaps(cause: str) -> Callable[[Judged], int]:
    """9: marked gaps with that cause."""

    def count(odd: Judged) -> int:
        return sum(event.value == cause for event in odd.run.events("gap"))

    return count


def failures(reason: str) -> Callable[[Judged], int]:
    """10: transactions that failed for a passing reason."""

    def count(odd: Judged) -> int:
        return sum(reason in (done.error or "") for done in odd.run.completions("fail"))

    return count


def both_sides_down(odd: Judged) -> int:
    """11: 1 if nobody was served while nobody could go on, and all came back."""
    done = [each.time_ns for each in odd.run.completions("ok")]
    during = [each for each in done if 2.8 * SECOND < each < 3.5 * SECOND]
    ended = sum(count for goal, count in odd.run.goals.items() if goal.startswith("a node ended itself"))
    return int(not during and ended >= len(DATA_NODES) and max(done) > 5 * SECOND)


def unclear_that_committed(odd: Judged) -> int:
    """15: transactions of unclear outcome that did commit."""
    return sum(t.outcome == "info" and t.is_committed for t in odd.observed.transactions)


SEEN: tuple[tuple[str, Callable[[Judged], int]], ...] = (
    ("committed reads", edges_back),
    ("quiet", numbers_out_of_order),
    ("quiet", empty_epochs),
    ("quiet", long_epochs),
    ("out of buffer", epochs_at_once),
    ("slow user", epochs_at_once),
    ("all crash", jumps),
    ("master dies", restarts_without_master),
    ("appends twice", merged_changes),
    ("late answers", events_before_answers),
    ("all crash", void_transactions),
    ("all crash", void_rows),
    ("all crash", gaps("cluster-failure")),
    ("out of buffer", gaps("inconsistent")),
    ("slow user", gaps("out-of-memory")),
    ("lagging", gaps("disconnected")),
    ("out of buffer", failures("a node failed")),
    ("quiet", failures("lock time-out")),
    ("no side goes on", both_sides_down),
    ("coordinator dies", unclear_that_committed),
)


@pytest.mark.parametrize("name", RUNS)
def test_an_odd_run_is_no_finding(runs: dict[str, Judged], name: str) -> None:
    odd = runs[name]
    assert (odd.report.findings, complaints(odd.run.evidence)) == ((), {})
    assert odd.report.verdict in ("valid", "vacuous")
    assert not [row.id for row in odd.report.promises if row.verdict in ("violated", "unknown")]


@pytest.mark.parametrize(("name", "count"), SEEN)
def test_it_does_show_what_is_odd(runs: dict[str, Judged], name: str, count: Callable[[Judged], int]) -> None:
    seen = count(runs[name])
    print(f"{name}: {seen}")
    assert seen > 0


def test_anti_dependencies_lead_back_without_locks_and_never_under_them(runs: dict[str, Judged]) -> None:
    free, locked = (list(anti_dependencies(runs[name].observed)) for name in ("committed reads", "locked reads"))
    print(
        f"edges to an older epoch: {sum(free)} of {len(free)} without lock, {sum(locked)} of {len(locked)} under lock"
    )
    assert sum(free) > 10
    assert len(locked) > 50
    assert sum(locked) == 0


def test_under_locks_without_the_block_of_commits_the_cut_is_not_closed(tmp_path: Path) -> None:
    """The twin of the locked run: the master's word comes late to d3, which goes on committing in the old epoch."""
    odd = judged(replace(LOCKED, bugs=("no-commit-block",)), tmp_path)
    broken = [each for each in odd.report.findings if (each.anomaly, each.promise) == ("cut-not-closed", "NDB-G5")]
    assert any("under a lock until its commit" in each.sentence for each in broken)
    assert edges_back(odd) > 0
    assert "orders" in complaints(odd.run.evidence)


def test_a_take_over_that_aborts_what_was_committed_is_noticed_by_the_oracles(tmp_path: Path) -> None:
    """d4 is coordinator and backup: it dies when it has committed, and its primary has not."""
    crash = step("crash", "crash", 2000, 4000, "d4", point="commit-on-backup")
    odd = judged(Odd(steps=(crash,), workload="two-keys", bugs=("takeover-aborts-committed",)), tmp_path)
    assert "fractured-transaction" in {each.anomaly for each in odd.report.findings}
    assert {"folds", "final reads"} <= complaints(odd.run.evidence).keys()
