"""Random small histories at every model, with and without an order of time, against brute force. Run:

    python -m tests.bench.axioms COUNT [SEED] [axioms|check|tangled]

COUNT histories of lists and as many of registers, unknown outcomes included, on all cores: the axioms by themselves.
And as many in which something is unclear, which the whole check judges: it may leave some open, but neither accuse an
innocent one nor pass another. And twice as many longer ones, with several troubles at once, against a formula. The
axioms take 20 ms for a history, and the whole check 30, or 90 for a longer one; the last argument names one of the
three. A disagreement is printed with its seed, and the exit code is 1.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import Pool
from random import Random
from typing import Final

from msgspec.structs import replace

from checkers.axioms import weak
from checkers.axioms.accesses import accesses, union
from checkers.axioms.execution import Execution, execution
from checkers.axioms.ladder import RUNGS, Rung
from checkers.axioms.levels import Level, is_ordered
from checkers.axioms.orders import polygraph
from checkers.axioms.weak import Axiom
from checkers.engine.datasets import LocalEngine
from checkers.graph.edges import PROCESS, REALTIME
from checkers.history.registers import Initial, Order
from checkers.history.transactions import Source
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from checkers.words.models import prohibited
from tests.oracles import axioms
from tests.oracles.explained import BELOW_ATOMIC, Model, explained, is_consistent
from tests.oracles.solved import solved
from tests.worlds.drawn_transactions import cut
from tests.worlds.tangled_histories import committed, tangled
from tests.worlds.troubled_histories import troubled
from tests.worlds.weak_histories import drawn

NAMES: Final = {
    Level.PREFIX: "prefix",
    Level.UPDATE: "update",
    Level.PARALLEL: "parallel",
    Level.SNAPSHOT: "snapshot",
    Level.SERIAL: "serial",
}
_WEAKER: Final = {
    "read-committed": "committed",
    "monotonic-atomic-view": "non-monotonic-view",
    "read-atomic": "fractured-read",
    "causal": "causal-violation",
    "prefix": "prefix",
    "parallel-snapshot-isolation": "parallel",
    "snapshot-isolation": "snapshot",
}
MODELS: Final = {"causal-cerone" if name == "causal" else name: Model(axiom) for name, axiom in _WEAKER.items()} | {
    "update-atomic": Model("update"),
    "serializable": Model("serial"),
    **{f"strong-session-{name}": Model(axiom, "process") for name, axiom in _WEAKER.items()},
    "strong-session-serializable": Model("serial", "process"),
    **{f"strong-{name}": Model(axiom, "realtime") for name, axiom in _WEAKER.items()},
    "strict-serializable": Model("serial", "realtime"),
}
ENGINE: Final = LocalEngine(1)
_ALONE: Final = 4  # Of all models, those that are judged alone.
_DECLARED: Final = 0.25  # Of the longer histories those in which all registers are declared to have been empty.
_WITH_COMMITS: Final = 0.25  # Of the longer histories those in which commits order the versions of registers.
TIMES: Final = {0: "", PROCESS: "process", REALTIME: "realtime"}


def axiom_of(rung: Rung) -> str:
    """The name of its axiom in `tests.oracles.axioms`."""
    return rung.model.value if isinstance(rung.model, Axiom) else NAMES[rung.model]


def holds(history: Execution, rung: Rung) -> bool:
    """True if nothing breaks the model: neither a cycle of reads and sessions, nor its own axiom."""
    if not is_ordered(history, rung.order):
        return False
    if isinstance(rung.model, Axiom):
        return weak.breach(history, rung.model, rung.order) is None
    return polygraph.decided(history, rung.model, rung.order) is None


def disagreements(seed: int, *, lists: bool) -> Iterator[str]:
    """A line for each model about which we and brute force disagree."""
    draw = Random(seed)
    operations = drawn(draw, lists=lists)
    ours = execution(union([accesses(source) for source in cut(draw, operations)]), is_declared=True)
    for rung in RUNGS:
        expected = axioms.holds(operations, axiom_of(rung), TIMES[rung.order])
        if holds(ours, rung) != expected:
            yield f"seed {seed}, lists {lists}: {rung.anomaly} is {'absent' if expected else 'present'}: {operations}"


def verdict(sources: Sequence[Source], model: str) -> str:
    """The whole check's answer: "valid", "invalid" or "unknown"."""
    judgement = check_sources(sources, ENGINE, Options(model=model))
    return "invalid" if judgement.findings else "unknown" if judgement.unknown else "valid"


def verdicts(sources: Sequence[Source], names: Sequence[str], options: Options | None = None) -> dict[str, str]:
    """The whole check's answer for each of those models, which are promises of one system."""
    forbidden = {name: prohibited((name,)) for name in names}
    options = replace(options or Options(), prohibited=tuple(forbidden.values()))
    judgement = check_sources(sources, ENGINE, options)
    found = {finding.anomaly for finding in judgement.findings}
    return {
        name: "invalid" if each & found else "unknown" if each & judgement.unknown.keys() else "valid"
        for name, each in forbidden.items()
    }


def misjudged(seed: int, *, lists: bool) -> Iterator[str]:
    """A line for each model at which the whole check is wrong about a history in which something is unclear.

    All models are judged together, as promises of one system, and some of them alone.
    """
    draw = Random(seed)
    operations = troubled(draw, lists=lists)
    sources, right = cut(draw, operations), explained(operations, MODELS.values())
    names = [*MODELS]
    answers = [("together", name, ours) for name, ours in verdicts(sources, names).items()]
    answers += [("alone", name, verdict(sources, name)) for name in draw.sample(names, _ALONE)]
    for how, name, ours in answers:
        if ours == ("invalid" if MODELS[name] in right else "valid"):
            yield f"seed {seed}, lists {lists}: {name}, {how}, is {ours}: {operations}"


def entangled(seed: int, *, lists: bool) -> Iterator[str]:
    """A line for each model at which the whole check is wrong about a longer history. `lists` only makes two seeds."""
    draw = Random(2 * seed + lists)
    operations, is_declared = tangled(draw), draw.random() < _DECLARED
    has_commits = draw.random() < _WITH_COMMITS
    if has_commits:
        operations = committed(draw, operations)
    sources, right = cut(draw, operations), solved(operations, MODELS.values(), is_declared=is_declared)
    names = [name for name in MODELS if not is_weak(name) or all(map(is_consistent, operations))]
    options = Options(initial=Initial(is_declared=is_declared), order=Order(commits=has_commits))
    for name, ours in verdicts(sources, names, options).items():
        if ours == ("invalid" if MODELS[name] in right else "valid"):
            given = f"initial {is_declared}, commits {has_commits}"
            yield f"seed {seed}, lists {lists}: {name}, {given}, is {ours}: {operations}"


def is_weak(name: str) -> bool:
    """True for models in which a key may change between two reads; the formula allows that in none."""
    return MODELS[name].axiom in BELOW_ATOMIC


KINDS: Final = {"axioms": disagreements, "check": misjudged, "tangled": entangled}


def _all(seed: int, kinds: Sequence[str]) -> list[str]:
    return [line for kind in kinds for lists in (True, False) for line in KINDS[kind](seed, lists=lists)]


def main() -> int:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    judged = partial(_all, kinds=sys.argv[3:] or tuple(KINDS))
    begin, found = time.perf_counter(), 0
    with Pool() as pool:
        for lines in pool.imap_unordered(judged, range(seed, seed + count), chunksize=50):
            found += len(lines)
            print(*lines, sep="\n", end="\n" if lines else "", flush=True)
    took = time.perf_counter() - begin
    print(f"{count} histories of each kind from seed {seed}: {found} disagreements, {took:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
