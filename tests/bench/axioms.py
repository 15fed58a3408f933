"""Random small histories at every model, with and without sessions, against brute force. Run:

    python -m tests.bench.axioms COUNT [SEED]

COUNT histories of lists and as many of registers, unknown outcomes included, on all cores. A disagreement is printed
with its seed, and the exit code is 1. 50,000 of each kind take about half an hour on two cores.
"""

import sys
import time
from collections.abc import Iterator
from multiprocessing import Pool
from random import Random
from typing import Final

from checkers.axioms import polygraph, weak
from checkers.axioms.accesses import accesses, union
from checkers.axioms.execution import Execution, execution
from checkers.axioms.ladder import RUNGS, Rung
from checkers.axioms.levels import Level, is_ordered
from checkers.axioms.weak import Axiom
from checkers.graph.edges import PROCESS, REALTIME
from tests.oracles import axioms
from tests.worlds.drawn_transactions import cut
from tests.worlds.weak_histories import drawn

NAMES: Final = {Level.PREFIX: "prefix", Level.PARALLEL: "parallel", Level.SNAPSHOT: "snapshot", Level.SERIAL: "serial"}
UNTIMED: Final = tuple(rung for rung in RUNGS if rung.order != REALTIME)


def holds(history: Execution, rung: Rung) -> bool:
    """True if nothing breaks the model: neither a cycle of reads and sessions, nor its own axiom."""
    if not is_ordered(history, rung.order):
        return False
    if isinstance(rung.model, Axiom):
        return weak.breach(history, rung.model, has_sessions=rung.order == PROCESS) is None
    return polygraph.decided(history, rung.model, rung.order) is None


def disagreements(seed: int, *, lists: bool) -> Iterator[str]:
    """A line for each model about which we and brute force disagree."""
    draw = Random(seed)
    operations = drawn(draw, lists=lists)
    ours = execution(union([accesses(source) for source in cut(draw, operations)]))
    for rung in UNTIMED:
        name = rung.model.value if isinstance(rung.model, Axiom) else NAMES[rung.model]
        expected = axioms.holds(operations, name, has_sessions=rung.order == PROCESS)
        if holds(ours, rung) != expected:
            yield f"seed {seed}, lists {lists}: {rung.anomaly} is {'absent' if expected else 'present'}: {operations}"


def _both(seed: int) -> list[str]:
    return [line for lists in (True, False) for line in disagreements(seed, lists=lists)]


def main() -> int:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    begin, found = time.perf_counter(), 0
    with Pool() as pool:
        for lines in pool.imap_unordered(_both, range(seed, seed + count), chunksize=50):
            found += len(lines)
            print(*lines, sep="\n", end="\n" if lines else "", flush=True)
    took = time.perf_counter() - begin
    print(f"{count} histories of each kind from seed {seed}: {found} disagreements, {took:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
