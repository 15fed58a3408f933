#!/usr/bin/env python3
"""Makes PostgreSQL commit three serializable transactions that have no serial order, and runs the controls.

    python3 repeat.py --bin /usr/lib/postgresql/15/bin

It needs Python 3.10, psycopg 3, gdb, and the programs of a PostgreSQL server; debug symbols are not needed. It creates
a server of its own in a temporary folder, and removes it. As root it runs the server as the user `postgres`. As another
user, gdb must be allowed to attach: `sysctl kernel.yama.ptrace_scope=0`.

Three sessions use two tables of one row each, x and y, both 0. Reads are SELECT v FROM x, writes UPDATE x SET v = 1.

    B: BEGIN SERIALIZABLE, reads x = 0, writes y = 1
    A: BEGIN SERIALIZABLE, writes x = 1, COMMIT: gdb holds it at the entry of ReleasePredicateLocks
    C: BEGIN SERIALIZABLE, reads x = 1
    B: COMMIT
    A: goes on, and its COMMIT is answered
    C: reads y = 0, COMMIT

If all three commit, no serial order explains the reads: B before A, A before C, C before B.

Exit code: 0 if every case ended as on a server with the defect, 1 if one did not, 2 if nothing could be run.
"""

import argparse
import itertools
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

try:
    import psycopg
except ImportError:
    sys.exit("repeat.py needs psycopg 3: apt-get install python3-psycopg, or pip install 'psycopg[binary]'")

RELEASE, VISIBLE = "ReleasePredicateLocks", "ProcArrayEndTransaction"
WITHIN_S = 60
NO_ORDER, ORDER, REFUSED = "no serial order", "serial order", "refused"


@dataclass(frozen=True)
class Case:
    """One way to interleave the three transactions. `hold` names the function at whose entry A's COMMIT is held."""

    name: str
    expected: str  # NO_ORDER, ORDER or REFUSED.
    hold: str | None = RELEASE
    mode: str = ""  # How C begins, beyond SERIALIZABLE.
    reads_y_early: bool = False  # C reads y before A goes on.
    lock: str = ""  # A locking clause of C's read of y.


CASES = (
    Case("A held after it became visible", NO_ORDER),
    Case("the same, C is READ ONLY", NO_ORDER, mode="READ ONLY"),
    Case("the same, C is READ ONLY DEFERRABLE", NO_ORDER, mode="READ ONLY DEFERRABLE"),
    Case("control: A's COMMIT is awaited", REFUSED, hold=None),
    Case("control: C reads y before A goes on", REFUSED, reads_y_early=True),
    Case("control: A held before it became visible", ORDER, hold=VISIBLE),
    Case("control: C reads y FOR SHARE", REFUSED, lock=" FOR SHARE"),
)


class Trouble(Exception):
    """Nothing could be measured, and why."""


# The judge: no theory, all orders.


def serial_orders(reads: dict[str, list[tuple[str, int]]], writes: dict[str, list[tuple[str, int]]]) -> list[str]:
    """The orders of the committed transactions, as "BAC", in which each reads what it read, one after the other.

    No transaction reads what it writes itself, so that its reads can come first.
    """
    found = []
    for order in itertools.permutations(sorted(reads)):
        state = {"x": 0, "y": 0}
        fits = True
        for name in order:
            fits = fits and all(state[row] == value for row, value in reads[name])
            state.update(writes[name])
        if fits:
            found.append("".join(order))
    return found


# The sessions


@dataclass
class Session:
    """One connection and its transaction: what it read and wrote, and how it ended."""

    name: str
    connection: Any
    tell: Callable[[str], None]
    reads: list[tuple[str, int]] = field(default_factory=list)
    writes: list[tuple[str, int]] = field(default_factory=list)
    ended: str = ""  # "committed", or the SQLSTATE that refused it.

    def begin(self, mode: str = "") -> None:
        """Forget the last transaction, and begin one."""
        self.reads, self.writes, self.ended = [], [], ""
        self._run(f"BEGIN ISOLATION LEVEL SERIALIZABLE {mode}".strip())

    def read(self, row: str, lock: str = "") -> None:
        """Read x or y."""
        statement = f"SELECT v FROM {row}{lock}"  # noqa: S608  Our own names.
        answer = self._run(statement, quiet=True)
        if answer is not None:
            self.reads.append((row, answer[0]))
            self.tell(f"{self.name}: {statement} -> {answer[0]}")

    def write(self, row: str) -> None:
        """Set x or y to 1."""
        if self._run(f"UPDATE {row} SET v = 1") is not None:  # noqa: S608  Our own names.
            self.writes.append((row, 1))

    def commit(self) -> None:
        """Commit, unless it was refused before."""
        if self._run("COMMIT") is not None:
            self.ended = "committed"

    def _run(self, statement: str, *, quiet: bool = False) -> Sequence[Any] | None:
        """A row of the answer, or an empty one; None if the transaction was refused, now or before."""
        if self.ended:
            return None
        try:
            cursor = self.connection.execute(statement)
        except psycopg.Error as error:
            self.ended = error.sqlstate or "lost its connection"
            self.tell(f"{self.name}: {statement} -> ERROR {self.ended}: {error.diag.message_primary}")
            if not self.connection.closed:
                self.connection.execute("ROLLBACK")
            return None
        if not quiet:
            self.tell(f"{self.name}: {statement}")
        row: Sequence[Any] = cursor.fetchone() if cursor.description else ()
        return row

    @property
    def pid(self) -> int:
        """The server's process for this session."""
        return int(self.connection.info.backend_pid)


# The debugger


class Held:
    """gdb at one process of the server, which it stops at the entry of a function."""

    def __init__(self, pid: int, function: str) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        self._seen: list[str] = []
        self._gdb = subprocess.Popen(
            ["gdb", "-nx", "-q", "-p", str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "DEBUGINFOD_URLS": "", "LC_ALL": "C"},
        )
        threading.Thread(target=self._read, daemon=True).start()
        self._say("set pagination off", "set confirm off", "handle SIGUSR1 SIGUSR2 SIGURG SIGALRM nostop noprint pass")
        # The asterisk: at its first instruction, whether or not there are debug symbols.
        self._say(f"break *{function}", "echo armed\\n", "continue")
        self._await("Breakpoint 1 at 0x", "armed")

    def await_hit(self) -> None:
        """Return when the process stands at the function's entry."""
        self._await("Breakpoint 1, ")

    def release(self) -> None:
        """Let the server process continue, and end gdb."""
        if self._gdb.poll() is None:
            self._say("delete", "detach", "quit")
            self._gdb.wait(WITHIN_S)
        for pipe in (self._gdb.stdin, self._gdb.stdout):
            if pipe is not None:
                pipe.close()

    def _say(self, *commands: str) -> None:
        assert self._gdb.stdin is not None
        self._gdb.stdin.write("".join(f"{command}\n" for command in commands))
        self._gdb.stdin.flush()

    def _read(self) -> None:
        assert self._gdb.stdout is not None
        try:
            for line in self._gdb.stdout:
                self._lines.put(line)
        except ValueError:  # Closed by release().
            pass

    def _await(self, *texts: str) -> None:
        missing = set(texts)
        while missing:
            try:
                line = self._lines.get(timeout=WITHIN_S)
            except queue.Empty:
                self._gdb.kill()
                output = " | ".join(each.strip() for each in self._seen[-6:])
                raise Trouble(f"gdb did not come to {sorted(missing)} in {WITHIN_S} s; it said: {output}") from None
            self._seen.append(line)
            if any(sign in line for sign in ("ptrace: ", "not allowed", "Cannot insert breakpoint", "not defined")):
                self._gdb.kill()
                raise Trouble(f"gdb cannot stop it ({line.strip()}): run as root, or set kernel.yama.ptrace_scope=0")
            missing = {text for text in missing if text not in line}


# One attempt


def attempt(case: Case, a: Session, b: Session, c: Session) -> str:
    """How one interleaving ended: NO_ORDER, ORDER or REFUSED, with what was refused or which orders there are."""
    a.connection.execute("UPDATE x SET v = 0")
    a.connection.execute("UPDATE y SET v = 0")
    with ThreadPoolExecutor(2) as threads:
        b.begin()
        b.read("x")
        b.write("y")
        a.begin()
        a.write("x")
        held = Held(a.pid, case.hold) if case.hold else None
        try:
            a_commits = threads.submit(a.commit)
            if held:
                held.await_hit()
                a.tell(f"A: COMMIT is held at the entry of {case.hold}")
            else:
                a_commits.result(WITHIN_S)
            c_reads = _c_begins(case, c, threads)
            if case.reads_y_early:
                c.read("y")
            b.commit()
        finally:
            if held:
                a.tell("A goes on")
                held.release()
        a_commits.result(WITHIN_S)
        c_reads.result(WITHIN_S)
    if not case.reads_y_early:
        c.read("y", case.lock)
    c.commit()
    return _judged(a, b, c)


def _c_begins(case: Case, c: Session, threads: ThreadPoolExecutor) -> "Future[None]":
    """C has taken its snapshot: it has read x, or, if it is DEFERRABLE, waits with its snapshot for the others."""
    c.begin(case.mode)
    reading = threads.submit(c.read, "x")
    if "DEFERRABLE" not in case.mode:
        reading.result(WITHIN_S)
        return reading
    with psycopg.connect(c.connection.info.dsn, autocommit=True) as watch:
        for _ in range(WITHIN_S * 100):
            waiting = watch.execute("SELECT cardinality(pg_safe_snapshot_blocking_pids(%s))", (c.pid,)).fetchone()
            if waiting and waiting[0]:
                c.tell("C: SELECT v FROM x waits for a safe snapshot")
                return reading
            watch.execute("SELECT pg_sleep(0.01)")
    raise Trouble("C did not come to wait for a safe snapshot")


def _judged(*sessions: Session) -> str:
    ended = {each.name: each.ended for each in sessions}
    strange = {code for code in ended.values() if code not in ("committed", "40001")}
    if strange:
        raise Trouble(f"a transaction ended with {strange}, which is neither a commit nor a serialization failure")
    committed = [each for each in sessions if each.ended == "committed"]
    orders = serial_orders({s.name: s.reads for s in committed}, {s.name: s.writes for s in committed})
    if not orders:
        return NO_ORDER
    if len(committed) < len(sessions):
        return REFUSED
    return ORDER


# The server


@contextmanager
def server(programs: Path) -> Iterator[str]:
    """The connection string of a new server of those programs, with the tables; it is removed at the end."""
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="repeat-"))
    folder.chmod(0o777)  # Its user makes the data folder in it.
    data = str(folder / "data")
    settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c autovacuum=off"
    try:
        made = ("-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
        _run(user, programs / "initdb", "-D", data, *made)
        _run(user, programs / "pg_ctl", "-D", data, "-o", settings, "-l", f"{data}/log", "-w", "start")
        try:
            yield f"host={folder} user=postgres dbname=postgres"
        finally:
            _run(user, programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        subprocess.run(["rm", "-rf", data], user=user, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _run(user: str | None, *command: object) -> None:
    words = [str(each) for each in command]
    # No pipe: the server would inherit it, and its end would be awaited. No groups of root's: they may be dropped.
    with tempfile.TemporaryFile() as output:
        try:
            groups: list[str] | None = [] if user else None
            done = subprocess.run(
                words, user=user, group=user, extra_groups=groups, cwd="/", stdout=output, stderr=output, check=False
            )
        except (OSError, LookupError) as error:
            raise Trouble(f"{words[0]} could not be run: {error}; --bin names the folder of a server") from None
        output.seek(0)
        if done.returncode != 0:
            last = " | ".join(output.read().decode(errors="replace").split("\n")[-4:])
            raise Trouble(f"{' '.join(words)} ended with {done.returncode}: {last}")


def _said(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def _programs() -> Path:
    """The newest of Debian's servers, or what pg_config says."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    if found:
        return found[-1].parent
    if shutil.which("pg_config"):
        return Path(_said("pg_config", "--bindir"))
    raise Trouble("no server was found: --bin names the folder with its programs, postgres and initdb")


# All attempts


def measured(conninfo: str, attempts: int) -> bool:
    """Print what came of all cases. True if each ended as described, each time."""
    story: list[str] = []
    with psycopg.connect(conninfo, autocommit=True) as setup:
        for row in "xy":
            setup.execute(f"CREATE TABLE {row} (v int)")
            setup.execute(f"INSERT INTO {row} VALUES (0)")  # noqa: S608  Our own names.
        version = setup.execute("SHOW server_version").fetchone()
        debugger = _said("gdb", "--version").splitlines()[0]
        print(f"PostgreSQL {version and version[0]}; {debugger}; psycopg {psycopg.__version__}")
    with (
        psycopg.connect(conninfo, autocommit=True) as of_a,
        psycopg.connect(conninfo, autocommit=True) as of_b,
        psycopg.connect(conninfo, autocommit=True) as of_c,
    ):
        a, b, c = (Session(name, each, story.append) for name, each in zip("ABC", (of_a, of_b, of_c), strict=True))
        print(f"\n{'case':42} {'expected':16} found")
        is_as_described = True
        for case in CASES:
            results = Counter(attempt(case, a, b, c) for _ in range(attempts))
            is_as_described &= set(results) == {case.expected}
            found = ", ".join(f"{result} {count} of {attempts}" for result, count in results.most_common())
            print(f"{case.name:42} {case.expected:16} {found}", flush=True)
    first = story[: next(i for i, line in enumerate(story) if line.startswith("C: COMMIT") or "ERROR" in line) + 1]
    print("\nThe first attempt, step by step:", *first, sep="\n  ")
    return is_as_described


def main() -> int:
    """Run all cases; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bin", type=Path, help="the folder of a server's programs: postgres, initdb, pg_ctl")
    parser.add_argument("--attempts", type=int, default=3, help="how often each case is run (3)")
    options = parser.parse_args()
    if options.attempts < 1:
        parser.error("--attempts must be 1 or more")
    try:
        if shutil.which("gdb") is None:
            raise Trouble("gdb is missing: apt-get install gdb")
        with server(options.bin or _programs()) as conninfo:
            is_as_described = measured(conninfo, options.attempts)
    except (Trouble, psycopg.Error) as error:
        print(f"repeat.py: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print("\nEvery case ended as described." if is_as_described else "\nNot every case ended as described.")
    return 0 if is_as_described else 1


if __name__ == "__main__":
    sys.exit(main())
