"""The process of a simulation in which one thing goes wrong: broken_child.py WHAT RUN_JSON JOURNAL.

It spoils a name in one module, and then is `harness.runtimes.simulation.child`. It also shows what is recorded: the
index of each invocation that the journal has taken is a line of the file in SEAMARK_TEST_RECORDED, if that is set.
"""

import os
import runpy
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import harness.runtimes.simulation.faults
import harness.scenario.registry
from clusters.tutorial.client import TutorialClient
from clusters.tutorial.data_node import DataNode
from harness.core.record import Invoke, Mark, Record
from harness.record.journal import JournalWriter
from harness.scenario.workloads.list_append import Transactions

append = JournalWriter.append


def broken(*_: object, **__: object) -> None:
    raise ZeroDivisionError("spoiled for a test")


def full(writer: JournalWriter, record: Record) -> None:
    if isinstance(record, Invoke) and record.index == 20:
        raise OSError(28, "No space left on device")
    append(writer, record)


def killing(phase: str, count: int, kill: Callable[[], None]) -> None:
    """Let `kill` happen when the journal has taken `count` records of that phase."""
    phases = ["set-up"]
    seen = [0]
    path = os.environ.get("SEAMARK_TEST_RECORDED")
    recorded = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if path else None

    def counted(writer: JournalWriter, record: Record) -> None:
        append(writer, record)
        if isinstance(record, Invoke) and recorded is not None:
            os.write(recorded, b"%d\n" % record.index)
        if isinstance(record, Mark) and record.phase not in ("tick", phases[-1]):
            phases.append(record.phase)
            seen.append(0)
        seen[-1] += 1
        if (phases[-1], seen[-1]) == (phase, count):
            kill()

    spoil(JournalWriter, "append", counted)


def orphaned() -> None:
    """Kill the harness; whoever survives that says so, after a while."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(30)
    Path(os.environ["SEAMARK_TEST_SURVIVED"]).write_text("the simulation outlived the harness")


def interrupting() -> None:
    """Interrupt the harness alone, and be in the middle of things until it ends us."""
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(30)


def spoil(owner: object, name: str, put: object) -> None:
    setattr(owner, name, put)


SPOILED: dict[str, tuple[object, str, object]] = {
    "machine": (DataNode, "handle", broken),
    "client": (TutorialClient, "invoke", broken),
    "generator": (Transactions, "op", broken),
    "nemesis": (harness.runtimes.simulation.faults.Faults, "apply", broken),
    "probe": (harness.runtimes.simulation.faults.Faults, "effect", broken),
    "cluster": (harness.scenario.registry, "load_cluster", broken),
    "journal": (JournalWriter, "append", full),
    "exit-0": (DataNode, "handle", lambda *_: os._exit(0)),
    "exit-1": (DataNode, "handle", lambda *_: os._exit(1)),
}


def main() -> None:
    what, *arguments = sys.argv.pop(1).split(":")
    if what in SPOILED:
        spoil(*SPOILED[what])
    elif what == "import":
        sys.modules["harness.interpreter.interpreter"] = None  # type: ignore[assignment]  # This is how an import is made to fail.
    else:
        phase, count = arguments
        kills: dict[str, Callable[[], None]] = {
            "orphan": orphaned,
            "interrupt": interrupting,
            "kill-all": lambda: os.killpg(0, signal.SIGKILL),
        }
        killing(phase, int(count), kills.get(what, lambda: os.kill(os.getpid(), signal.Signals[what])))
    runpy.run_module("harness.runtimes.simulation.child", run_name="__main__")


if __name__ == "__main__":
    main()
