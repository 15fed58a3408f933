"""Our checks beside other checkers, in CPU seconds of the same run: medians, and how often ours fits into the other's.

    python -m tests.bench.peers [COMMIT]

A peer is measured if a package registry serves it: porcupine, a module of Go. Checks whose peers no registry serves are
compared with our own code at COMMIT (before the work on speed, unless one is named), which git has.
"""

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from typing import Final, NamedTuple

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.history.registers import Register
from checkers.linearizability.check import check
from harness.record.formats.load import load
from tests.bench import formats, generated, weak
from tests.bench.start import TEN

ROOT: Final = Path(__file__).resolve().parents[2]
BEFORE: Final = "28ec94ec"
TURNS: Final = 5
SEED: Final = 7
ELSEWHERE: Final = (
    "no registry serves Elle and Knossos (Clojars alone does), AWDIT, Cobra, PolySI and Viper (repositories alone do)"
)
REGISTER: Final = Register(model="key-value", initial="", is_initial_known=True, nil="absent")
CLIENTS, OPERATIONS = 20, 10_000
_PR_SET_CHILD_SUBREAPER: Final = 36
GIVEN_S: Final = 10  # To porcupine, which may need for ever.
COMMAND: Final = "import sys; from harness.cli.entry import main; sys.argv[0] = 'seamark'; sys.exit(main())"
WEAK: Final = "import sys, pathlib; from tests.bench.weak import judged; judged(pathlib.Path(sys.argv[1]), sys.argv[2])"
PAGE: Final = """
import pathlib, tempfile, time
from harness.core.arrow import leave_out_pandas
from tests.bench import report as bench
leave_out_pandas()  # As the command does.
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name, "history")
    bench.write_history(bench.records(bench.OPERATIONS), folder)
    shown = bench.Report(verdict="invalid", exit_code=1, reason="", findings=tuple(bench.findings(bench.OPERATIONS)))
    begin = time.process_time()
    bench.page(shown, folder)
    print(time.process_time() - begin)
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """CPU seconds of ours and of the other, by turn."""

    what: str
    ours: list[float]
    other: list[float]

    def __str__(self) -> str:
        ours, other = median(self.ours), median(self.other)
        return f"{self.what:48} {ours:8.3f} CPU s {other:8.3f} CPU s {other / ours:7.2f}"


def run(command: list[str], folder: Path) -> tuple[float, str]:
    """The CPU seconds of a command and its descendants, and its output. It must end with a verdict, good or bad."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # Java ends after the command that started it.
    others = _children()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = os.environ | {"XDG_CACHE_HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    while left := _children() - others:
        os.waitpid(left.pop(), 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in {0, 1}:
        raise ValueError(f"{' '.join(command)} exited with {done.returncode}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def _children() -> set[int]:
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


def seamark(*arguments: str) -> list[str]:
    """The command of this checkout."""
    return [str(Path(sys.executable).with_name("seamark")), *arguments, "--engine", "local", "--quiet"]


def built(folder: Path) -> tuple[Path, Path] | str:
    """The program that runs porcupine, and porcupine's own histories; or the reason why there is none."""
    if shutil.which("go") is None:
        return "Go is not installed (apt-get install golang-go)"
    source = shutil.copytree(Path(__file__).with_name("porcupine"), folder / "porcupine")
    program = folder / "checked-by-porcupine"
    done = subprocess.run(
        ["go", "build", "-o", str(program), "."], cwd=source, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"Go could not build it: {(done.stderr.splitlines() or ['no reason given'])[-1]}"
    listed = ["go", "list", "-m", "-f", "{{.Dir}}", "github.com/anishathalye/porcupine"]
    module = subprocess.run(listed, cwd=source, capture_output=True, text=True, check=True).stdout.strip()
    return program, Path(module, "test_data", "kv")


def key_value(path: Path, *, stale_permille: int) -> Path:
    """A history of one key: clients put texts of their own and get the last one, or with that chance an older one."""
    draw, texts, lines = Random(SEED), [""], list[str]()
    waiting: dict[int, tuple[str, str | None]] = {}
    for number in range(OPERATIONS):
        process = draw.randrange(CLIENTS)
        if process in waiting:
            f, text = waiting.pop(process)
            lines.append(_line(process, "ok", f, text))
        f = draw.choice(("get", "put"))
        lines.append(_line(process, "invoke", f, f"v{number}" if f == "put" else None))
        # It takes effect at once, and is answered when its process is drawn the next time.
        if f == "put":
            texts.append(f"v{number}")
        is_stale = len(texts) > 2 * CLIENTS and draw.random() * 1000 < stale_permille
        waiting[process] = (f, texts[-2 * CLIENTS if f == "get" and is_stale else -1])
    lines += [_line(process, "ok", *waiting[process]) for process in sorted(waiting)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _line(process: int, kind: str, f: str, text: str | None) -> str:
    shown = "nil" if text is None else f'"{text}"'
    return f'{{:process {process}, :type :{kind}, :f :{f}, :key "0", :value {shown}}}\n'


def check_s(path: Path) -> tuple[str, float]:
    """Our verdict on that history, and the CPU seconds of the check alone."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(path, Path(folder))
        begin = time.process_time()
        judgement = check(loaded.history, Context(engine=LocalEngine(), register=REGISTER))
        took_s = time.process_time() - begin
    return "Unknown" if judgement.unknown else "Illegal" if judgement.findings else "Ok", took_s


def porcupine(folder: Path) -> Iterator[Pair]:
    """The whole commands and the checks alone, on porcupine's largest histories and on two of ours."""
    found = built(folder)
    if isinstance(found, str):
        print(f"porcupine is left out: {found}")
        return
    program, histories = found
    files = [shutil.copy(histories / name, folder) for name in ("c50-ok.txt", "c50-bad.txt")]
    files += [key_value(folder / f"one-key-{stale}-stale.txt", stale_permille=stale) for stale in (0, 1)]
    for path in map(Path, files):
        whole, alone = Pair(f"{path.stem}, command", [], []), Pair(f"{path.stem}, check alone", [], [])
        for _ in range(TURNS):
            whole.ours.append(run(seamark("check", str(path)), folder)[0])
            took_s, told = run([str(program), str(path), str(GIVEN_S)], folder)
            whole.other.append(took_s)
            with get_context("spawn").Pool(1) as pool:
                verdict, took_s = pool.apply(check_s, (path,))
            answer = json.loads(told)
            assert answer["verdict"] in {verdict, "Unknown"}, f"{path.stem}: {verdict}, and porcupine says {told}"
            alone.ours.append(took_s)
            alone.other.append(answer["check_s"])
        yield whole
        yield alone
        if answer["verdict"] == "Unknown":
            print(f"  of which porcupine gave up after {GIVEN_S} s, on two cores")


class Work(NamedTuple):
    """Work that has no peer here. `is_told`: the command prints the CPU seconds that count."""

    what: str
    arguments: list[str]  # Of Python.
    is_told: bool = False


def works(folder: Path) -> Iterator[Work]:
    """The work in files of that folder."""

    def checked(path: Path, engine: str = "local") -> list[str]:
        return ["-c", COMMAND, "check", str(path), "--engine", engine, "--quiet"]

    (folder / "ten.edn").write_text(TEN, encoding="utf-8")
    yield Work("10 operations", checked(folder / "ten.edn"))
    for size, engine in ((100_000, "local"), (1_000_000, "spark")):
        formats.write(folder / f"lists-{size}.edn", size)
        yield Work(f"{size:,} lists from EDN, {engine} (Elle)", checked(folder / f"lists-{size}.edn", engine))
    for size in (100_000, 1_000_000):
        shape = generated.Shape(count=size, seed=SEED)
        generated.write_slices(folder / f"registers-{size}", map(generated.registers_of, generated.slices(shape)))
        yield Work(f"{size:,} registers (Elle)", checked(folder / f"registers-{size}"))
    weak.write(folder / "causal", "causal", 40_000)
    for model in ("read-committed", "read-atomic", "causal"):
        yield Work(f"40,000 of a causal store, {model} (AWDIT)", ["-c", WEAK, str(folder / "causal"), model])
    for cluster in ("ndb", "ticdc", "tutorial"):
        simulated = ["--seed", str(SEED), "--nemesis", "crash", "--store", str(folder / "store"), "--quiet"]
        yield Work(f"{cluster}, 60 simulated s", ["-c", COMMAND, "run", "--cluster", cluster, *simulated])
    yield Work("report.html of 1,000,000 operations", ["-c", PAGE], is_told=True)


def own(folder: Path, commit: str) -> Iterator[Pair]:
    """The work as this checkout does it, and as that commit did."""
    old = folder / "before"
    old.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        print(f"our own code before is left out: git has no commit {commit}")
        return
    subprocess.run(["tar", "x"], cwd=old, input=archive.stdout, check=True)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "."], cwd=old, check=False)
    for what, arguments, is_told in works(folder):
        pair = Pair(what, [], [])
        for _ in range(TURNS):
            for code, times in ((ROOT, pair.ours), (old, pair.other)):
                shutil.rmtree(folder / "seamark", ignore_errors=True)  # The cache of imports.
                took_s, told = run(["env", f"PYTHONPATH={code}", sys.executable, *arguments], folder)
                times.append(float(told) if is_told else took_s)
        yield pair


def main(commit: str) -> None:
    """Print a line for each measurement: ours, the other, and the ratio."""
    print(f"seed {SEED}; {os.getloadavg()[0]:.1f} processes were running already; {ELSEWHERE}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{'':48} {'ours':>14} {'porcupine':>14}   ratio")
        for pair in porcupine(folder):
            print(pair, flush=True)
        print(f"{'':48} {'ours':>14} {commit:>14}   ratio")
        for pair in own(folder, commit):
            print(pair, flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else BEFORE)
