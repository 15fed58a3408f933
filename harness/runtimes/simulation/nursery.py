"""A process that has imported the simulator, and forks a child for each run: the imports cost as much as a short run.

Run as `python -m harness.runtimes.simulation.nursery`. Each line of standard input is a JSON list: the file for the
child's standard error, and the arguments of `child.main`. For each a line with the child's exit code is written, -n if
signal n ended it. A child is as separate from other runs as one that is started anew, since nothing runs here but the
imports. All of it ends with the parent.
"""

import gc
import json
import os
import sys

from harness.record.processes import die_with_parent
from harness.runtimes.child import end_with
from harness.runtimes.simulation.child import main


def serve() -> None:
    """Carry out orders until standard input ends."""
    die_with_parent()
    gc.freeze()
    for line in sys.stdin:
        log, *arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            sys.argv[1:] = arguments
            _take_over(log)
            end_with(main)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _take_over(log: str) -> None:
    """Give this child the standard streams of a newly started process."""
    nothing = os.open(os.devnull, os.O_RDWR)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    for stream, target in ((0, nothing), (1, nothing), (2, file)):
        os.dup2(target, stream)


if __name__ == "__main__":
    serve()
