"""SIGKILL of check, sweep, hunt, shrink and a run in containers: `python -m tests.bench.kills [KILLS] [COMMAND ...]`.

Each command is killed that many times, at moments that SEAMARK_TEST_SEED draws: the command alone, or with all that it
started. After each kill everything that was recorded must still be there; and after ten seconds and one `seamark clean`
no process, temporary file, container, network or volume may be left. Sweeps, hunts and shrinks go on after each kill,
and in the end must come to what they come to without one. Exits with 1 if anything was lost or left.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from harness.core.record import Json
from harness.core.verdict import EXIT_USAGE
from harness.record.ownership import Fate, temporary_fate
from harness.runtimes.containers.engine.engine import connect
from tests.system.harnesses import RUN, Harness, left_of, seamark, session_of, write_plan

KILLS: Final = 30
SEED: Final = int(os.environ.get("SEAMARK_TEST_SEED", "0"))
SILENCE_S: Final = 10.0
EDN_BYTES: Final = 66 << 20
BUG: Final = (
    "--cluster",
    "tutorial",
    "--bug",
    "lost-ack",
    "--nemesis",
    "partition",
    "--seed",
    "1",
    "--time",
    "8",
    "--rate",
    "30",
)
SWEEP: Final = """
name = "killed"
time = 4.0
rate = 30.0
[[matrix]]
clusters = ["tutorial"]
faults = ["partition"]
bug = ["lost-ack"]
count = 40
"""


class Struck:
    """The kills of one command in one folder, and what they left."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.dice = random.Random(f"{SEED}/{name}")
        self.cache = {"XDG_CACHE_HOME": str(folder / "cache")}
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def strike(self, is_there: Callable[[Harness], bool], most_s: float, *arguments: str) -> Harness:
        """Kill that command at a moment of up to `most_s` after `is_there`, and look for what it left."""
        with Harness(self.folder, *arguments, **self.cache) as harness:
            while not is_there(harness) and harness.process.poll() is None:
                time.sleep(0.01)
            end_s = time.monotonic() + self.dice.uniform(0, most_s)
            while time.monotonic() < end_s and harness.process.poll() is None:
                harness.await_moment(lambda _: True)
                time.sleep(0.01)
            whom = self.dice.choice(["parent", "group"])
            if (code := harness.process.poll()) is not None:
                if code == EXIT_USAGE:  # As after a change of the code: no sweep goes on with another one.
                    sys.exit(f"{self.name}: refused: {' '.join(arguments)}")
                self.counts["ended before"] += 1
                harness.end()
                return harness
            harness.kill(whom)
            self.counts[f"killed ({whom})"] += 1
            self._look_at(harness)
        return harness

    def _look_at(self, harness: Harness) -> None:
        pid = harness.process.pid
        end_s = time.monotonic() + SILENCE_S
        while (alive := list(_of_session(pid))) and time.monotonic() < end_s:
            time.sleep(0.05)
        self.counts["processes after ten seconds"] += len(alive)
        left = self._files()
        self.counts["files before clean"] += len(left)
        if alive or left or left_of(connect(), harness.child):
            code, out, _ = seamark(self.folder, "clean", **self.cache)
            self.counts["cleans"] += 1
            if code != 0:
                self.problems.append(f"clean: {out}")
        remains = [*map(str, _of_session(pid)), *self._files(), *left_of(connect(), harness.child)]
        if remains:
            self.problems.append(f"left after clean: {remains}")

    def _files(self) -> list[str]:
        """Temporary files of dead processes."""
        return [str(path) for path in self.folder.rglob("*") if temporary_fate(path.name) is Fate.GONE]

    def require(self, holds: bool, problem: str) -> None:
        """Note that problem unless it holds."""
        if not holds:
            self.problems.append(problem)

    @property
    def kills(self) -> int:
        """The number of kills so far."""
        return sum(count for name, count in self.counts.items() if name.startswith("killed"))


def _of_session(session: int) -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").glob("[0-9]*") if session_of(int(path.name)) == session)


def check(struck: Struck, kills: int) -> None:
    """The import of a large EDN file: the file stays as it is, and its verdict does."""
    path = struck.folder / "large.edn"
    _write_edn(path)
    arguments = ("check", str(path), "--engine", "local", "--json")
    began_s, digest = time.monotonic(), _digest(path)
    first = _judged(struck, *arguments)
    took_s = time.monotonic() - began_s
    while struck.kills < kills:
        shutil.rmtree(struck.folder / "cache", ignore_errors=True)
        struck.strike(lambda _: True, took_s, *arguments)
        struck.require(_digest(path) == digest, "the file has changed")
    struck.require(_judged(struck, *arguments) == first, "the verdict has changed")
    struck.require(_judged(struck, *arguments) == first, "the verdict has changed with what is kept of the import")


def _write_edn(path: Path) -> None:
    """A history of appends and reads, one after another, without an anomaly."""
    line = "{{:type :{}, :process {}, :f :txn, :value [[:append {} {}] [:r {} {}]], :index {}, :time {}}}\n"
    with path.open("w", encoding="ascii") as file:
        number = 0
        while file.tell() < EDN_BYTES:
            key, size = number // 8, number % 8 + 1
            read = f"[{' '.join(map(str, range(1, size + 1)))}]"
            for kind, value in (("invoke", "nil"), ("ok", read)):
                index = 2 * number + (kind == "ok")
                file.write(line.format(kind, number % 10, key, size, key, value, index, index * 1000))
            number += 1


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _judged(struck: Struck, *arguments: str) -> tuple[int, dict[str, Json]]:
    """The exit code, and the report without what differs each time."""
    code, out, err = seamark(struck.folder, *arguments, **struck.cache)
    struck.require("Traceback" not in out + err, err)
    report = json.loads(out)
    return code, {name: report[name] for name in ("verdict", "reason", "findings", "operations", "history_sha256")}


def sweep(struck: Struck, kills: int) -> None:
    """A sweep whose runs are red: no row is lost or doubled, and each red run is kept once."""
    config = struck.folder / "killed.toml"
    config.write_text(SWEEP, encoding="utf-8")
    _campaign(struck, kills, "sweep", lambda seed: ("sweep", str(config), "--seed", seed), "sweep.json")
    folders = list(struck.folder.glob("store/tutorial/*"))
    empty = [path.name for path in folders if not any(path.iterdir())]
    struck.require(not empty, f"empty folders of runs: {empty}")
    runs = Counter(path.name.partition("Z-")[2].partition(".")[0] for path in folders if path.name not in empty)
    struck.counts["red runs kept"] = len(runs)
    struck.require(set(runs.values()) <= {1}, f"red runs that are kept twice: {runs}")


def hunt(struck: Struck, kills: int) -> None:
    """A hunt that finds nothing."""
    options = ("--cluster", "tutorial", "--time", "4", "--rate", "30", "--count", "40", "--no-shrink")
    _campaign(struck, kills, "hunt", lambda seed: ("hunt", *options, "--seed", seed), "hunt.json")


def _campaign(struck: Struck, kills: int, kind: str, begin: Callable[[str], tuple[str, ...]], document: str) -> None:
    """One campaign after another, each killed and resumed until it ends."""
    number = 0
    while struck.kills < kills:
        number += 1000
        folder = _killed_until_it_ends(struck, kills, (kind, number), begin(str(number)), document)
        struck.counts[f"{kind}s ended"] += 1
        struck.counts["rows"] += _rows(folder).count(b"\n")
        again = struck.folder / "again"
        again.mkdir(exist_ok=True)
        seamark(again, *begin(str(number)), **struck.cache)
        other = _place(again, kind, number)
        assert other is not None
        struck.require(_seen(folder, document) == _seen(other, document), f"{folder} differs from {other}")


def _killed_until_it_ends(
    struck: Struck, kills: int, campaign: tuple[str, int], arguments: tuple[str, ...], document: str
) -> Path:
    """The folder of a campaign that was killed and resumed, and has ended."""
    kind, number = campaign
    folder = None
    while folder is None or not (folder / document).is_file():
        before = b"" if folder is None else _rows(folder)
        wanted = before.count(b"\n") + struck.dice.randrange(3)

        def is_there(_: Harness, wanted: int = wanted) -> bool:
            place = _place(struck.folder, kind, number)
            return place is not None and _rows(place).count(b"\n") >= wanted

        if struck.kills < kills:
            struck.strike(is_there, 3.0, *arguments)
        else:
            seamark(struck.folder, *arguments, **struck.cache)
        folder = _place(struck.folder, kind, number)
        if folder is not None:
            arguments = (kind, "--resume", str(folder))
            whole = before[: before.rfind(b"\n") + 1]
            struck.require(_rows(folder).startswith(whole), f"rows of {folder} were lost")
    return folder


def _place(folder: Path, kind: str, number: int) -> Path | None:
    """The folder of the campaign that began with that seed; None if it has not begun."""
    return next((path.parent for path in folder.glob(f"store/{kind}s/*/*-{number}/rows.jsonl")), None)


def _rows(folder: Path) -> bytes:
    return (folder / "rows.jsonl").read_bytes() if (folder / "rows.jsonl").is_file() else b""


def _seen(folder: Path, document: str) -> dict[str, Json]:
    """What a campaign came to."""
    found = json.loads((folder / document).read_bytes())
    return {name: found.get(name) for name in ("verdict", "planned", "counts")}


def shrink(struck: Struck, kills: int) -> None:
    """A shrink that goes on after each kill comes to the same script as one that was never killed."""
    seamark(struck.folder, "run", *BUG, "--engine", "local", **struck.cache)
    (run,) = struck.folder.glob("store/tutorial/*")
    original = shutil.copytree(run, struck.folder / "original")
    again = struck.folder / "again"
    shutil.copytree(run, again / "store" / "tutorial" / run.name)
    seamark(again, "shrink", f"store/tutorial/{run.name}", **struck.cache)
    (script,) = again.glob("store/tutorial/*/script.txt")
    while struck.kills < kills or not list(struck.folder.glob("store/tutorial/*/script.txt")):
        for done in struck.folder.glob("store/tutorial/*/script.txt"):
            _compare_shrunk(struck, script, done)
            shutil.rmtree(struck.folder / "store")
            shutil.copytree(original, run)
        if struck.kills < kills:
            struck.strike(lambda _: True, 8.0, "shrink", f"store/tutorial/{run.name}")
        else:
            seamark(struck.folder, "shrink", f"store/tutorial/{run.name}", **struck.cache)
        for file in original.iterdir():
            same = not file.is_file() or (run / file.name).read_bytes() == file.read_bytes()
            struck.require(same, f"{file.name} of the run has changed")
    for done in struck.folder.glob("store/tutorial/*/script.txt"):
        _compare_shrunk(struck, script, done)


def _compare_shrunk(struck: Struck, script: Path, done: Path) -> None:
    struck.counts["shrinks ended"] += 1
    struck.require(done.read_bytes() == script.read_bytes(), f"{done} is not {script}")


def container(struck: Struck, kills: int) -> None:
    """A run in containers: every operation in its journal is judged, and the engine is as it was."""
    plan = write_plan(struck.folder)
    while struck.kills < kills:
        arguments = (*RUN, "--plan", plan, "--seed", "1", "--time", "4")
        phase = struck.dice.choice(("", "load", "load", "healing"))  # Two of four under load, and one before it.
        harness = struck.strike(partial(_is_in, phase), 8.0, *arguments)
        run = harness.run
        if run is None or not (run / "journal.log").is_file():
            struck.counts["nothing recorded yet"] += 1
            continue
        harness.await_moment(lambda _: True)
        code, out, err = seamark(struck.folder, "check", str(run), "--engine", "local", "--json", **struck.cache)
        struck.require("Traceback" not in out + err, err)
        stored = set(pq.read_table(run / "history" / "ops.parquet")["index"].to_pylist())
        struck.require(stored == set(harness.seen.invocations), f"{run}: operations were lost")
        struck.require(harness.seen.has_footer or code == 3, f"{run}: exit {code} without its end")
        struck.counts["operations"] += len(stored)


def _is_in(phase: str, harness: Harness) -> bool:
    """True once the run is in that phase, or beyond it."""
    harness.await_moment(lambda seen: not phase or seen.phase not in {"", "set-up", "load"} - {phase})
    return True


COMMANDS: Final[dict[str, Callable[[Struck, int], None]]] = {
    "check": check, "sweep": sweep, "hunt": hunt, "shrink": shrink, "container": container,
}  # fmt: skip


def main() -> None:
    kills = int(sys.argv[1]) if sys.argv[1:] else KILLS
    is_held = True
    for name in sys.argv[2:] or COMMANDS:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            struck, began_s = Struck(name, Path(folder)), time.monotonic()
            COMMANDS[name](struck, kills)
        shown = ", ".join(f"{what} {count:,}" for what, count in sorted(struck.counts.items()))
        print(f"{name:10} seed {SEED}: {shown}; {time.monotonic() - began_s:.0f} s", flush=True)
        print(*(f"  PROBLEM {problem}" for problem in struck.problems), sep="\n", flush=True)
        is_held &= not struck.problems
    sys.exit(0 if is_held else 1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
