"""Workloads: their options, and the transactions that they draw."""

from harness.core.generators.generator import Context, Generator, Planned
from harness.core.record import MicroOp
from harness.scenario.workloads import WorkloadOptions

SECOND = 1_000_000_000


def options(seed: int = 1, **changed: int) -> WorkloadOptions:
    return WorkloadOptions(**{"seed": seed, "rate_per_s": 100, "duration_ns": 20 * SECOND, "threads": 5, **changed})


def transactions(load: Generator) -> list[tuple[MicroOp, ...]]:
    """All of the load, as an idle system would get it."""
    found = []
    idle = Context(0, (0,), (0,))
    while (answer := load.op(idle)) is not None:
        planned, load = answer
        assert isinstance(planned, Planned)
        assert planned.f == "txn"
        assert planned.mops is not None
        found.append(planned.mops)
    return found


def appends(history: list[tuple[MicroOp, ...]]) -> list[tuple[int, int]]:
    mops = [mop for mops in history for mop in mops if mop.f == "append"]
    return [(mop.key, mop.value) for mop in mops if isinstance(mop.key, int) and isinstance(mop.value, int)]
