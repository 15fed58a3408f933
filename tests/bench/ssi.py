"""Prints how often a server of PostgreSQL 15 commits three serializable transactions that have no serial order.

Run as `python -m tests.bench.ssi`. A run of this project found it (docs/findings/postgresql-serializable.md); here it
is without faults or a debugger, by nothing but three connections to a server. It prints attempts and hits, which are
no rate of any load: what A has made before decides how long the moment lasts.
1. B reads x, and writes y. A writes x, and begins to commit. So B comes before A.
2. A's commit becomes visible; what it has locked for the sake of serializability is released a moment later, and until
   then A has not committed in that sense. Each table that A made or locked before makes the moment longer.
3. In that moment C begins, sees A's x, and so comes after A; and B commits. B is taken to have committed first, so that
   the release of A forgets that B comes before it.
4. C reads y as it was before B, so C comes before B: before A, before C. Nothing is left that could tell the server.
Beside it stands the same with A's commit awaited, where the server refuses one of them each time.
"""

import asyncio
import os
from collections import Counter

from clusters.postgres.line import Line, Refused, dial
from clusters.postgres.service import PRIMARY
from harness.core.machine import Settings
from harness.core.seams import Address
from tests.system.local_postgres import servers

ROUNDS = 12
PARTITIONS = 1000
EACH = "EXECUTE format('CREATE TABLE t_%s_%s (a int, b text)', {number}, i)"
MAKE = f"DO $$ BEGIN FOR i IN 1..{{count}} LOOP {EACH}; END LOOP; END $$"
READ = "SELECT count(*) FROM parts WHERE number <= {count}"
# What A does first, in words and as a statement, and on how many tables.
FIRST = (
    ("makes {count} tables", MAKE, 0),
    ("makes {count} tables", MAKE, 10),
    ("makes {count} tables", MAKE, 100),
    ("makes {count} tables", MAKE, 300),
    ("reads {count} partitions", READ, 100),
    ("reads {count} partitions", READ, PARTITIONS),
)
BEGIN = ("BEGIN ISOLATION LEVEL SERIALIZABLE",)
SETTINGS = Settings(options={"isolation": "serializable", "replication": "async"})


async def held(line: Line, row: int, *before: tuple[str]) -> bytes | None:
    """What that row holds."""
    *_, answer = await line.run(*before, (f"SELECT held FROM rows WHERE number = {row}",))  # noqa: S608  A number of ours.
    return answer.rows[0][0]


async def set_row(line: Line, row: int) -> None:
    """Let it hold 1."""
    await line.run((f"UPDATE rows SET held = 1 WHERE number = {row}",))  # noqa: S608  A number of ours.


async def tried(a: Line, b: Line, c: Line, number: int, *, first: str, is_awaited: bool) -> str:
    """What came of one attempt, in which A begins with that statement."""
    x, y = 2 * number, 2 * number + 1
    await a.run((f"INSERT INTO rows VALUES ({x}, 0), ({y}, 0)",))  # noqa: S608  Numbers of ours.
    commit: asyncio.Task[object] | None = None
    try:
        assert await held(b, x, BEGIN) == b"0"
        await set_row(b, y)
        await a.run(BEGIN)
        await a.run((first,))
        await set_row(a, x)
        commit = asyncio.create_task(a.run(("COMMIT",)))
        if is_awaited:
            await commit
        while await held(c, x, BEGIN) == b"0":
            await c.run(("ROLLBACK",))
        await b.run(("COMMIT",))
        await commit
        seen = await held(c, y)
        await c.run(("COMMIT",))
    except Refused as refused:
        if commit is not None:
            await asyncio.gather(commit, return_exceptions=True)
        for line in (a, b, c):
            await line.run(("ROLLBACK",))
        return f"refused with {refused.sqlstate}"
    return f"all three committed, and C saw x as 1 and y as {(seen or b'').decode()}"


async def measured(door: Address, *, first: str, count: int, is_awaited: bool) -> Counter[str]:
    """What came of all attempts, after the server's version is printed."""
    a, b, c = [await dial(door, name=name, options="-cenable_seqscan=off") for name in "abc"]
    await a.run(("CREATE TABLE rows (number int PRIMARY KEY, held int)",))
    if first == READ:
        await a.run(("CREATE TABLE parts (number int) PARTITION BY RANGE (number)",))
        each = "EXECUTE format('CREATE TABLE part_%s PARTITION OF parts FOR VALUES FROM (%s) TO (%s)', i, i, i + 1)"
        await a.run((f"DO $$ BEGIN FOR i IN 1..{PARTITIONS} LOOP {each}; END LOOP; END $$",))
    for line in (a, b, c):
        await line.run(("SET idle_in_transaction_session_timeout = 0",))
    await b.run(("SET synchronous_commit = off",))  # Only to be quicker.
    results = []
    for number in range(ROUNDS):
        statement = first.format(count=count, number=number)
        results.append(await tried(a, b, c, number, first=statement, is_awaited=is_awaited))
    [version] = await a.run(("SHOW server_version",))
    print(f"PostgreSQL {(version.rows[0][0] or b'').decode()}, load average {os.getloadavg()[0]:.1f}")
    for line in (a, b, c):
        line.close()
    return Counter(results)


def main() -> None:
    """Print all cases; those that take longest first with A's commit awaited."""
    awaited = [(*case, True) for case in FIRST if case[2] in (300, PARTITIONS)]
    for words, first, count, is_awaited in (*awaited, *((*case, False) for case in FIRST)):
        with servers(SETTINGS) as found:
            results = asyncio.run(measured(found[PRIMARY].door, first=first, count=count, is_awaited=is_awaited))
        print(f"A {words.format(count=count)}, and its commit is {'' if is_awaited else 'not '}awaited:")
        for result, times in results.most_common():
            print(f"  {times:4} {result}")


if __name__ == "__main__":
    main()
