"""Prints how often a load that nobody helps makes PostgreSQL 15 commit transactions that have no serial order.

Run as `python -m tests.bench.ssi_load`, with `--seconds` for each row (20) and `--seed`. It looks for the race of
docs/findings/postgresql-serializable.md in the load of pgbench, which is quick, with three kinds of transaction, all
serializable. They work at shops; a shop has a number, its open day.
A closes the day: the number becomes one more. Before, it may make temporary tables, which go with its commit.
B enters a receipt for the open day.
C reads the open day and, a millisecond later, counts the receipts of the day before, and writes its report.
Who enters a receipt for a day comes before its end, and who reports on it comes after. So in any serial order a report
has all receipts that its day has in the end. Each report with fewer is a hit. What is refused is not tried again.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from clusters.postgres.service import PRIMARY, USER
from tests.bench.ssi import SETTINGS
from tests.system.local_postgres import BIN, Server, servers

BEGIN = "\\set shop random(1, :shops)\nBEGIN ISOLATION LEVEL SERIALIZABLE;\n"
# Made and dropped at the commit: each is announced to all processes there.
TABLES = (
    "DO $$ BEGIN FOR i IN 1..{tables} LOOP EXECUTE format('CREATE TEMP TABLE t%s (a int) ON COMMIT DROP', i); "
    "END LOOP; END $$;\n"
)
CLOSE = "UPDATE shops SET day = day + 1 WHERE shop = :shop;\nCOMMIT;\n"
ENTER = "INSERT INTO receipts SELECT shop, day FROM shops WHERE shop = :shop;\nCOMMIT;\n"
COUNT = """SELECT day - 1 AS day FROM shops WHERE shop = :shop \\gset
\\sleep 1 ms
INSERT INTO reports SELECT :shop, :day, count(*) FROM receipts WHERE shop = :shop AND day = :day;
COMMIT;
"""
TABLES_OF_LOAD = """CREATE TABLE shops (shop int PRIMARY KEY, day int NOT NULL) WITH (fillfactor = 10);
CREATE TABLE receipts (shop int, day int); CREATE INDEX ON receipts (shop, day);
CREATE TABLE reports (shop int, day int, receipts int);
INSERT INTO shops SELECT n, 1 FROM generate_series(1, {shops}) n;
ALTER DATABASE postgres SET synchronous_commit = {flush}"""
HITS = """SELECT count(*), count(*) FILTER (WHERE receipts <
(SELECT count(*) FROM receipts AS r WHERE (r.shop, r.day) = (reports.shop, reports.day))) FROM reports"""
SHOPS = 8
# Clients, temporary tables that A makes, busy loops beside the server, and whether a commit awaits its disk.
ROWS = (
    (4, 0, 0, "on"),
    (24, 0, 0, "on"),
    (64, 0, 0, "on"),
    (64, 0, 4, "on"),
    (64, 5, 0, "on"),
    (64, 0, 0, "off"),
)
WEIGHTS = {"close": 1, "enter": 6, "count": 6}


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many processes that want a processor all the time."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def told(server: Server, program: str, *arguments: str) -> str:
    """What a program of the server's package prints."""
    place = ("-h", server.door.host, "-p", str(server.door.port), "-U", USER)
    return subprocess.run(
        [str(BIN / program), *place, *arguments, "postgres"], check=True, capture_output=True, text=True
    ).stdout


def loaded(server: Server, folder: Path, clients: int, tables: int, options: argparse.Namespace) -> str:
    """What pgbench says of the load."""
    making = TABLES.format(tables=tables) if tables else ""
    for name, text in (("close", making + CLOSE), ("enter", ENTER), ("count", COUNT)):
        (folder / name).write_text(BEGIN + text, encoding="utf-8")
    scripts = [f"--file={folder / name}@{weight}" for name, weight in WEIGHTS.items()]
    how = [f"--client={clients}", "--jobs=2", f"--time={options.seconds}", f"--random-seed={options.seed}"]
    return told(server, "pgbench", "--no-vacuum", f"--define=shops={SHOPS}", *how, *scripts)


def number(said: str, what: str) -> int:
    """What pgbench says that the number of something is: of all transactions, which come before those of each kind."""
    return int(re.findall(rf"number of {what}: (\d+)", said)[0])


def main() -> None:
    """Print a row for each load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}, seed {options.seed}")
    print("clients  tables of A  busy loops  synchronous_commit  committed  refused  reports  hits")
    for clients, tables, loops, flush in ROWS:
        with TemporaryDirectory() as name, servers(SETTINGS) as found, busy_loops(loops):
            server = found[PRIMARY]
            told(server, "psql", "-qc", TABLES_OF_LOAD.format(shops=SHOPS, flush=flush))
            said = loaded(server, Path(name), clients, tables, options)
            reports, hits = told(server, "psql", "-qAtF ", "-c", HITS).split()
        committed, refused = (number(said, what) for what in ("transactions actually processed", "failed transactions"))
        load = f"{clients:7}  {tables:11}  {loops:10}  {flush:>18}"
        print(f"{load}  {committed:9}  {refused:7}  {reports:>7}  {hits:>4}", flush=True)


if __name__ == "__main__":
    main()
