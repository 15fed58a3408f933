"""The process that forks the workers of a local Spark, run as a program."""

import gc
import os
import sys
from importlib import import_module
from typing import Final

from checkers.engine.memory import one_heap
from harness.core.arrow import leave_out_pandas

LOADED: Final = "SEAMARK_LOADED"  # Environment variable of this process: the modules to import.
_KERNELS: Final = "checkers.engine.spark_rdd"


def main() -> None:
    """Import all that kernels need, and fork workers until Spark ends."""
    _leave_out_archives()
    import pyspark.worker  # noqa: F401, PLC0415  Imported once here, not in each worker.
    from pyspark.daemon import manager  # noqa: PLC0415

    one_heap()  # Workers are forked from here.
    leave_out_pandas()
    for name in (_KERNELS, *os.environ.get(LOADED, "").split()):
        import_module(name)
    # After each task a worker collects garbage. That visited everything imported, and cost more than a short task.
    gc.freeze()
    manager()


def _leave_out_archives() -> None:
    """Let Python find the installed pyspark: Spark puts its own archives of the same code before it.

    From them Python would compile pyspark at each start, and each worker would read their directories again: 0.8 CPU s.
    """
    home = os.environ["SPARK_HOME"] + os.sep
    sys.path[:] = [each for each in sys.path if not each.startswith(home)]
    for each in [each for each in sys.path_importer_cache if each.startswith(home)]:
        del sys.path_importer_cache[each]


if __name__ == "__main__":
    main()
