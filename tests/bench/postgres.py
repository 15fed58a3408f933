"""Prints operations a second of whole runs against PostgreSQL, beside what pgbench does with the same transactions.

Run as `python -m tests.bench.postgres`. Each line is one run in containers: the workload is asked for as fast as its
clients can, through relays and Toxiproxy, every invocation and completion in a journal, two subscribers following.
Before it pgbench asks the same servers through the same doors for transactions of the same workload, with nothing
recorded and nobody following; it waits for each statement, where our client sends the steps of a transaction together.
List-append at serializable: many transactions meet, and of those that do one fails.
"""

import asyncio
import os
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec

from clusters.postgres import Cluster, rows
from clusters.postgres.client import LEVELS
from clusters.postgres.service import PRIMARY, USER
from clusters.postgres.setup import prepare
from harness.core.generators.generator import Context, Generator, Planned
from harness.core.generators.until_ok import EachUntilOk
from harness.core.machine import Settings
from harness.core.record import Complete, Evidence, Mark, MicroOp
from harness.core.seams import Doors
from harness.record.journal import JournalWriter
from harness.runtimes.containers.child import Test, WallClock
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario, decide

CLIENTS = (1, 8, 32)
LOAD_S, PGBENCH_S = 8, 6
RATE = 6000.0  # More than there is room for.
SCRIPTS = 100  # pgbench takes no more than 128.
PGBENCH = "/usr/lib/postgresql/15/bin/pgbench"


@dataclass
class Tally:
    """Counts what is recorded while the load lasts."""

    journal: JournalWriter
    begin_ns: int = 0
    end_ns: int = 0
    outcomes: list[str] = field(default_factory=list)

    def append(self, evidence: Evidence) -> None:
        self.journal.append(evidence)
        match evidence:
            case Mark(time_ns=time_ns, phase="load"):
                self.begin_ns = time_ns
            case Mark(time_ns=time_ns, phase="healing"):
                self.end_ns = time_ns
            case Complete(outcome=outcome) if not self.end_ns:
                self.outcomes.append(outcome)

    def per_s(self, *outcomes: str) -> float:
        return sum(map(self.outcomes.count, outcomes)) / ((self.end_ns - self.begin_ns) / 1e9)


@dataclass(frozen=True)
class Bench:
    """What pgbench said: transactions a second that were committed, and how many of a hundred were not."""

    tps: float
    failed_percent: float


def transactions(load: Generator) -> Iterator[tuple[MicroOp, ...]]:
    """What that load asks for, one after the other."""
    idle = Context(time_ns=0, free=(0,), processes=(0,))
    answer = load.op(idle)
    while answer is not None and isinstance(answer[0], Planned):
        yield answer[0].mops or ()
        answer = answer[1].op(idle)


def script(mops: tuple[MicroOp, ...]) -> str:
    """One transaction for pgbench. Keys give way to new ones with every second, so that lists stay as short as ours."""
    lines = [f"BEGIN ISOLATION LEVEL {LEVELS['serializable']};"]
    for mop in mops:
        assert isinstance(mop.key, int)
        key = f"'\"b' || ({mop.key} + 1000 * floor(extract(epoch FROM now())))::bigint::text || '\"'"
        table = rows.table_of(rows.LIST, mop.key)
        statement = rows.read(table) if mop.f == "r" else rows.append(table)
        lines.append(statement.replace("$1", f"({key})").replace("$2", f"'{mop.value}'") + ";")
    return "\n".join([*lines, "COMMIT;", ""])


async def pgbench(doors: Doors, clients: int, scripts: list[Path]) -> Bench:
    """What it makes of those scripts, drawn by chance. This process relays its bytes meanwhile."""
    door = doors[PRIMARY]
    command = [PGBENCH, "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(PGBENCH_S)]
    command += ["-h", door.host, "-p", str(door.port), "-U", USER, *(f"--file={path}" for path in scripts), "postgres"]
    environment = os.environ | {"PGOPTIONS": "-c enable_seqscan=off"}
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=environment
    )
    result = (await process.communicate())[0].decode()
    tps, failed = re.search(r"tps = ([\d.]+)", result), re.search(r"failed transactions: \d+ \(([\d.]+)%\)", result)
    assert tps is not None, result
    return Bench(float(tps[1]), float(failed[1]) if failed else 0.0)


async def measured(clients: int, folder: Path) -> tuple[Tally, Bench]:
    """One run, and pgbench on its servers before it begins."""
    scenario = Scenario(
        cluster="postgres", runtime="docker", seed=1, time_s=LOAD_S, rate=RATE, clients=clients, nemesis=()
    )
    cluster = Cluster()
    decided = decide(scenario, cluster)
    workload = decided.workload
    scripts = []
    for number, mops in enumerate(islice(transactions(workload.load), SCRIPTS)):
        scripts.append(folder / f"{number}.sql")
        scripts[-1].write_text(script(mops))
    found: list[Bench] = []

    async def bench_and_prepare(doors: Doors, settings: Settings) -> None:
        await prepare(doors, settings)
        found.append(await pgbench(doors, clients, scripts))
        await whole(doors, settings)

    whole, cluster.prepare = cluster.prepare, bench_and_prepare
    quiet = msgspec.structs.replace(workload, final=EachUntilOk((), 1))
    with JournalWriter(folder / "journal.log") as journal:
        tally = Tally(journal)
        without_final = msgspec.structs.replace(decided, workload=quiet)
        test = Test(scenario, installed(scenario.cluster), without_final, WallClock(), tally.append)
        await test.carry_out(cluster, folder)
    return tally, found[0]


def main() -> None:
    """Print the table."""
    print(f"list-append, serializable, {LOAD_S} s; load average {os.getloadavg()[0]:.1f} at the start")
    print("clients  operations/s    ok/s  failed   pgbench: ok/s  failed   ok/s, ours of pgbench's")
    for clients in CLIENTS:
        begin_s = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            tally, bench = asyncio.run(measured(clients, Path(folder)))
        total, ok = tally.per_s("ok", "fail", "info"), tally.per_s("ok")
        failed = f"{100 * (1 - ok / total):.0f} %"
        print(
            f"{clients:7}  {total:12.0f}  {ok:6.0f}  {failed:>6}   {bench.tps:13.0f}  {bench.failed_percent:4.0f} %"
            f"   {100 * ok / bench.tps:.0f} %   (took {time.monotonic() - begin_s:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
