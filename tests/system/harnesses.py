"""A harness with its run in containers, as processes of their own that can be watched, interrupted and killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import docker
import msgspec

from harness.core.record import Fault, Footer, Invoke, Json, Mark, Record
from harness.record.journal import JournalTail
from nemesis.plan import Plan, Step

SEAMARK = "from harness.cli.entry import main; main()"
MS = 1_000_000
PATIENCE_S = 120.0
POLL_S = 0.005
RUN = ("run", "--runtime", "docker", "--cluster", "tutorial", "--engine", "local", "--store", "store")
PLAN = Plan(
    steps=(
        Step(
            fault="crash", package="crash", at_ns=300 * MS, until_ns=1800 * MS, targets=("n2",), args={"disk": "kept"}
        ),
        Step(fault="pause", package="pause", at_ns=900 * MS, until_ns=2300 * MS, targets=("s1",), args={}),
        Step(
            fault="stall",
            package="partition",
            at_ns=1300 * MS,
            until_ns=3400 * MS,
            targets=("s2>n1", "n1>s2"),
            args={},
        ),
        Step(fault="disk-full", package="full-disk", at_ns=2500 * MS, until_ns=3800 * MS, targets=("n1",), args={}),
    )
)


@dataclass(slots=True)
class Seen:
    """What a run's journal has shown so far."""

    has_begun: bool = False
    phase: str = ""
    invocations: list[int] = field(default_factory=list)
    has_footer: bool = False
    faults: int = 0  # In force.

    def take(self, record: Record) -> None:
        self.has_begun = True
        match record:
            case Mark(phase=phase) if phase != "tick":
                self.phase = phase
            case Invoke(index=index):
                self.invocations.append(index)
            case Fault(phase="begin"):
                self.faults += 1
            case Fault(phase="end"):
                self.faults -= 1
            case Footer():
                self.has_footer = True


class Harness:
    """`seamark ARGUMENTS` in a session of its own, in `folder`, where its temporary files go as well."""

    def __init__(self, folder: Path, *arguments: str, code: str = SEAMARK, **environment: str) -> None:
        self.folder = folder
        (folder / "tmp").mkdir(exist_ok=True)
        given = os.environ | {"TMPDIR": str(folder / "tmp"), "COLUMNS": "200"} | environment
        self._is_known = {path.name for path in folder.glob("store/*/*")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            cwd=folder,
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.seen = Seen()
        self.child: int | None = None  # The process that carries the run out.
        self._tail: JournalTail | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """A test that failed leaves no process behind; one that ended did what there was to do."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        self.process.communicate()

    @property
    def run(self) -> Path | None:
        """The directory of its run, once there is one."""
        new = (path for path in self.folder.glob("store/*/*") if path.name not in self._is_known)
        return next(new, None)

    def await_moment(self, is_there: Callable[[Seen], bool]) -> None:
        """Return when the journal shows that, or the harness has ended."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not is_there(self._look()) and self.process.poll() is None:
            assert time.monotonic() < deadline_s, f"no such moment came: {self.seen.phase}"
            time.sleep(POLL_S)

    def _look(self) -> Seen:
        if self.child is None:
            self.child = next(iter(children(self.process.pid)), None)
        if self._tail is None and self.run is not None:
            self._tail = JournalTail(self.run / "journal.log")
        if self._tail is not None:
            for record in self._tail.read():
                self.seen.take(record)
        return self.seen

    def kill(self, whom: str, number: signal.Signals = signal.SIGKILL) -> None:
        """The signal to the whole "group", or to "parent" or "child" alone."""
        if whom == "group":
            os.killpg(self.process.pid, number)
        elif whom == "parent":
            os.kill(self.process.pid, number)
        else:
            assert self.child is not None
            os.kill(self.child, number)

    def end(self) -> tuple[int, str, str]:
        """Its exit code, what it printed, and what it complained of."""
        out, err = self.process.communicate(timeout=PATIENCE_S * 2)
        return self.process.returncode, out, err

    def is_running(self) -> bool:
        """Is anything of it running: itself, or what it started?"""
        return any(session_of(int(path.name)) == self.process.pid for path in Path("/proc").glob("[0-9]*"))

    def await_silence(self) -> None:
        """Return when nothing of it runs any more."""
        deadline_s = time.monotonic() + PATIENCE_S
        while self.is_running():
            assert time.monotonic() < deadline_s, "something goes on running"
            time.sleep(POLL_S)


def seamark(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """What that command came to."""
    with Harness(folder, *arguments, **environment) as harness:
        return harness.end()


def checked(folder: Path, run: Path) -> tuple[int, dict[str, Json]]:
    """What `seamark check` says of a run: its exit code, and its report."""
    code, out, err = seamark(folder, "check", str(run), "--engine", "local", "--json")
    assert "Traceback" not in out + err
    return code, msgspec.json.decode(out, type=dict[str, Json])


def write_plan(folder: Path, plan: Plan = PLAN) -> str:
    """A file with that plan."""
    path = folder / "plan.json"
    path.write_bytes(msgspec.json.encode(plan))
    return str(path)


def left_of(engine: docker.DockerClient, owner: int | None) -> list[str]:
    """What the engine still has of the process with that number."""
    if owner is None:
        return []
    filters: dict[str, str | list[str] | bool] = {"label": f"seamark.pid={owner}"}
    return [
        *(str(each["Names"][0]).removeprefix("/") for each in engine.api.containers(all=True, filters=filters)),
        *(str(each["Name"]) for each in engine.api.networks(filters=filters)),
        *(str(each["Name"]) for each in engine.api.volumes(filters=filters)["Volumes"] or []),
    ]


def folders_of(folder: Path) -> list[str]:
    """Temporary folders of ours that are left."""
    return [path.name for path in (folder / "tmp").iterdir() if path.is_dir()]


def children(pid: int) -> Iterator[int]:
    """The processes that this one has started and not buried."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        yield from map(int, text.split())


def session_of(pid: int) -> int | None:
    """The session of a process; None if it has ended."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = line[line.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[3])
