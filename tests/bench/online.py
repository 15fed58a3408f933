"""The online check beside the pace of a fast stream: 50,000 rows a second of one subscriber must be kept up with.

One subscriber of two hundred sessions, in batches of a fifth of a second of such a stream, of one of a tenth of that
pace, and of one whose sessions begin two thousand positions back, so that each looks back. Prints rows for each second
of processor time, the most events that were held, and how often all events before had to be looked at again.
"""

import time
from dataclasses import replace

import numpy as np

from checkers.streams.online import Online
from checkers.streams.online_state import joined, taken
from harness.core.columns import NEVER, OPEN, ROW, Deliveries
from tests.bench.streams import CONTRACT, source, stream

ROWS, SESSIONS = 1_000_000, 100


def with_units(deliveries: Deliveries) -> Deliveries:
    """The stream, each row with the name and size of its operation."""
    is_row = deliveries.kind == ROW
    return replace(deliveries, unit=np.where(is_row, deliveries.position, NEVER), unit_rows=np.where(is_row, 2, NEVER))


def resumed(deliveries: Deliveries, rows: int) -> Deliveries:
    """The stream, each session but the first with so many of the rows before it once more."""
    opens = np.flatnonzero(deliveries.kind == OPEN)[1:].tolist()
    parts, last = [], 0
    for place in opens:
        before = np.flatnonzero(deliveries.kind[:place] == ROW)[-rows:]
        again = taken(deliveries, before)
        position = deliveries.position.copy()
        position[place] = again.position[0] - 1
        marker = taken(replace(deliveries, position=position), np.array([place]))
        session = np.full(rows, marker.session[0])
        parts += [taken(deliveries, np.arange(last, place)), marker, replace(again, session=session)]
        last = place + 1
    whole = joined(*parts, taken(deliveries, np.arange(last, len(deliveries.kind))))
    return replace(whole, seq=np.arange(len(whole.kind)))


def main() -> None:
    plain = with_units(stream(source(ROWS)))
    print("                        rows/s     held   looks back   violations")
    for name, deliveries, size in (
        ("50,000 rows/s", plain, 10_000),
        ("5,000 rows/s", taken(plain, np.arange(ROWS // 10)), 1_000),
        ("resumed 2,000 back", resumed(taken(plain, np.arange(ROWS // 2)), 2_000), 10_000),
    ):
        looks = [0]

        def recall(
            _: int | None, seq: int, *, deliveries: Deliveries = deliveries, looks: list[int] = looks
        ) -> Deliveries:
            looks[0] += 1
            return taken(deliveries, np.flatnonzero(deliveries.seq < seq))

        online = Online(CONTRACT, recall)
        held = found = 0
        begin = time.process_time()
        for first in range(0, len(deliveries.kind), size):
            found += len(online.feed(taken(deliveries, np.arange(first, min(first + size, len(deliveries.kind))))))
            held = max(held, online.held)
        rows = int(np.count_nonzero(deliveries.kind == ROW))
        pace = rows / (time.process_time() - begin)
        print(f"{name:20s}{pace:10,.0f}{held:9,}{looks[0]:13,}{found:13,}")


if __name__ == "__main__":
    main()
