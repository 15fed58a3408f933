"""Counter: every transaction reads the busiest list under lock and appends to it, so that its length is their count."""

import msgspec

from harness.core.seams import Workload
from harness.scenario.workloads.grouped import promise
from harness.scenario.workloads.list_append import list_append
from harness.scenario.workloads.options import WorkloadOptions
from harness.scenario.workloads.populations import COUNTER

COUNTS = promise(
    "counter",
    1,
    "A list has at least the elements certainly appended before, and at most those that may have been.",
    "counter-out-of-bounds",
)


def counter(options: WorkloadOptions) -> Workload:
    """The load of list-append's counter, with the promise of a counter."""
    workload = list_append("counter", COUNTER, options, is_single=True)
    return msgspec.structs.replace(workload, checks=("list-append", "counter"), promises=(COUNTS,))
