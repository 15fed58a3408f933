"""The `seamark` command: an installation that cannot be imported fails with one line, and never with exit 1."""

import gc
import os
import resource
import sys
from collections.abc import Callable, Sequence
from typing import Final

from harness.cli.commands import command_named, function_of
from harness.cli.standard import use_lasting_streams
from harness.core.arrow import leave_out_documentation, leave_out_pandas
from harness.record.processes import mark_processes

ADDRESS_SPACE_MIN: Final = 2 << 30  # The least memory in bytes. With less, Arrow aborts, crashes or never ends.


def main() -> None:
    """Load the command line and run it, then end the process at once.

    The interpreter's own end would take half a second after a large history, to free memory that the kernel frees at
    once; and a check that took too long may still be computing, which would abort it.
    """
    try:
        _run()
    except KeyboardInterrupt:  # While modules load, which takes a second, or while the last line is printed.
        print("seamark: interrupted", file=sys.stderr)  # noqa: T201  Its only word.
        os._exit(130)


def _loaded(arguments: Sequence[str]) -> Callable[[], None]:
    """What runs the command line. The command that is named is loaded before: here, what is missing is one line."""
    gc.disable()  # What is loaded stays. To look for garbage in it, again and again, would take a tenth of a second.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # Its threads cost 0.04 CPU s to start, and do nothing here.
    command = command_named(arguments)
    if command is not None:
        leave_out_documentation()
        leave_out_pandas()
        function_of(command)
    from harness.cli.main import main as run  # noqa: PLC0415  What this raises is to be caught.

    gc.freeze()
    gc.enable()
    return run


def _run() -> None:
    use_lasting_streams()
    mark_processes()
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < ADDRESS_SPACE_MIN:
        line = f"ulimit -v is {limit >> 20} MiB, and Seamark needs {ADDRESS_SPACE_MIN >> 20}, with Spark more: raise it"
        print(f"seamark: {line}", file=sys.stderr)  # noqa: T201  Its only word.
        sys.exit(4)
    try:
        run = _loaded(sys.argv[1:])
    except Exception as error:  # noqa: BLE001  A package is missing or broken, whichever.
        print(f"seamark: cannot be loaded ({error!r}): make setup installs what it needs", file=sys.stderr)  # noqa: T201  Its only word.
        sys.exit(4)
    try:
        run()
    except SystemExit as end:
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 4)
