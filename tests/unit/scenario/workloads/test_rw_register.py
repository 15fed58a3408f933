from itertools import zip_longest

from harness.core.generators.generator import Context, Generator, Planned
from harness.core.record import MicroOp
from harness.scenario.workloads import WORKLOADS, WorkloadOptions
from tests.unit.generator_simulator import imperfect, simulate

SECOND = 1_000_000_000
OPTIONS = WorkloadOptions(seed=1, rate_per_s=100, duration_ns=5 * SECOND, threads=5)
NAMES = {"append": "w", "r": "r"}


def transactions(load: Generator) -> list[tuple[MicroOp, ...]]:
    """All of the load, as an idle system would get it."""
    found = []
    idle = Context(0, (0,), (0,))
    while (answer := load.op(idle)) is not None:
        planned, load = answer
        assert isinstance(planned, Planned)
        assert planned.mops is not None
        found.append(planned.mops)
    return found


def test_it_asks_of_registers_what_list_append_asks_of_lists() -> None:
    lists = transactions(WORKLOADS["list-append"](OPTIONS).load)
    registers = transactions(WORKLOADS["rw-register"](OPTIONS).load)
    assert len(registers) > 100
    for one, other in zip_longest(lists, registers):
        assert [(NAMES[mop.f], f"r{mop.key}", mop.value) for mop in one] == [
            (mop.f, mop.key, mop.value) for mop in other
        ]


def test_every_value_is_written_to_its_register_once() -> None:
    every = transactions(WORKLOADS["rw-register"](OPTIONS).load)
    writes = [(mop.key, mop.value) for mops in every for mop in mops if mop.f == "w"]
    assert len(writes) == len(set(map(str, writes))) > 100


def test_at_the_end_each_register_is_read_until_that_succeeds() -> None:
    workload = WORKLOADS["rw-register"](OPTIONS)
    used = {str(mop.key) for mops in transactions(workload.load) for mop in mops}
    trace = simulate(workload.final, imperfect, most=2000)
    read = {invoke.index: invoke.mops for invoke in trace.invokes}
    assert {mop.f for mops in read.values() for mop in mops or ()} == {"r"}
    succeeded = [mops[0].key for c in trace.completes if c.outcome == "ok" and (mops := read[c.index]) is not None]
    assert len(succeeded) == len(set(map(str, succeeded)))
    assert used <= set(map(str, succeeded))
    assert trace.is_exhausted
