"""Transactions that read and write registers: for systems without lists.

The same load as list-append, keys and values included, with a write for each append: every value is written to its
register once, so a read shows which write it saw. The order of the values must be inferred, which is weaker evidence
than a list. Registers are named by text, so that they are not taken for lists.
"""

import msgspec
from msgspec.structs import replace

from harness.core.generators.combinators import Answer, Event
from harness.core.generators.generator import Context, Generator, Planned
from harness.core.record import MicroOp
from harness.core.seams import Workload
from harness.scenario.workloads.list_append import list_append
from harness.scenario.workloads.options import WorkloadOptions
from harness.scenario.workloads.populations import LIST_APPEND

NAME = "rw-register"


def rw_register(options: WorkloadOptions) -> Workload:
    """The rw-register workload, an open loop of `rate_per_s`. At the end each register is read until that succeeds."""
    lists = list_append(NAME, LIST_APPEND, options)
    return msgspec.structs.replace(lists, load=OnRegisters(lists.load), final=OnRegisters(lists.final), checks=(NAME,))


class OnRegisters(msgspec.Struct, frozen=True):
    """The operations of `child`, which are about lists, turned into operations on registers."""

    child: Generator

    def op(self, context: Context) -> Answer:
        answer = self.child.op(context)
        if answer is None:
            return None
        planned, after = answer
        return (_on_registers(planned) if isinstance(planned, Planned) else planned), OnRegisters(after)

    def update(self, context: Context, event: Event) -> Generator:
        child = self.child.update(context, event)
        return self if child is self.child else OnRegisters(child)


def _on_registers(planned: Planned) -> Planned:
    mops = tuple(
        MicroOp("w" if mop.f == "append" else "r", f"r{mop.key}", mop.value, lock=mop.lock)
        for mop in planned.mops or ()
    )
    return replace(planned, mops=mops)
