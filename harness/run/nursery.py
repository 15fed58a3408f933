"""Simulated runs of a pool, each in a process that is forked from one which has imported the simulator already."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from harness.record.store import JOURNAL, RUN_FILE
from harness.run.running import RunFailed, ended_with, fresh_log
from harness.scenario.consent import Code

COMMAND = ("-P", "-m", "harness.runtimes.simulation.nursery")


class Nursery:
    """A process that has imported the simulator and forks runs. It ends with this process."""

    def __init__(self) -> None:
        command = [sys.executable, *COMMAND]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603  Our own interpreter and module.

    @property
    def pid(self) -> int:
        """The id of that process."""
        return self._process.pid

    def execute(self, run: Path, code: Code) -> None:
        """Carry out the simulated run `run`/run.json with the cluster of `code`, and write its journal.

        Raises RunFailed if its process fails.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        log = fresh_log(run)
        try:
            self._process.stdin.write(f"{json.dumps([str(log), str(run / RUN_FILE), str(run / JOURNAL), code.name])}\n")
            self._process.stdin.flush()
            exit_code = self._process.stdout.readline()
        except BrokenPipeError:
            exit_code = ""
        if not exit_code:
            self._forget()
            raise RunFailed(run, "the process that begins simulations has ended")
        ended_with(run, int(exit_code))

    def _forget(self) -> None:
        """Let the next run begin another process, if this is the one that all runs share."""
        if nursery.cache_info().currsize and nursery() is self:
            nursery.cache_clear()
            self.close()

    def close(self) -> None:
        """End the process. No run may be in progress."""
        self._process.communicate()


@cache
def nursery() -> Nursery:
    """The nursery of this process."""
    return Nursery()
