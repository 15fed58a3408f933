"""The online check of a live run: a stream of one subscriber that is judged thirty times while it grows.

Each look judges all events so far. Prints, for streams of several sizes, the seconds of processor time of all looks and
of the longest, and the peak of memory. A run looks less often, once its stream is long (harness/run/stopping.py).
"""

import resource
import time

import numpy as np
from msgspec.structs import replace

from checkers.columns.table import take
from checkers.streams.online import Online
from harness.core.columns import NEVER, ROW, Deliveries
from tests.bench.streams import CONTRACT, source, stream

SIZES, LOOKS = (10_000, 100_000, 1_000_000), 30
KB_A_MB = 1024


def with_units(deliveries: Deliveries) -> Deliveries:
    """The stream, each row with the name and size of its operation."""
    is_row = deliveries.kind == ROW
    return replace(deliveries, unit=np.where(is_row, deliveries.position, NEVER), unit_rows=np.where(is_row, 2, NEVER))


def main() -> None:
    print("    events   all looks   longest   peak   violations")
    for rows in SIZES:
        deliveries = with_units(stream(source(rows)))
        online, took, found = Online(CONTRACT), [0.0], 0
        size = -(-len(deliveries.kind) // LOOKS)
        for first in range(0, len(deliveries.kind), size):
            begin = time.process_time()
            found += len(list(online.feed(take(deliveries, slice(first, first + size)))))
            took.append(time.process_time() - begin)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KB_A_MB
        print(f"{len(deliveries.kind):10,}{sum(took):10.2f} s{max(took):8.2f} s{peak:7,.0f} MB{found:8,}")


if __name__ == "__main__":
    main()
