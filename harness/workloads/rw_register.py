"""Transactions that read and write registers: what systems without lists can be asked.

The same load as list-append, keys and values included, with a write for each append: every value is written to its
register once, so a read tells whose write it saw. In which order the values came must be inferred, which says less than
a list does. Registers are named by text, so that nobody takes them for lists.
"""

from dataclasses import replace

import msgspec

from harness.core.combinators import Answer, Event
from harness.core.generator import Context, Generator, Planned
from harness.core.record import MicroOp
from harness.core.seams import Workload
from harness.workloads.list_append import list_append
from harness.workloads.options import WorkloadOptions
from harness.workloads.populations import LIST_APPEND

NAME = "rw-register"


def rw_register(options: WorkloadOptions) -> Workload:
    """That load at an open loop of `rate_per_s`; at the end each register is read until that succeeds."""
    lists = list_append(NAME, LIST_APPEND, options)
    return msgspec.structs.replace(lists, load=OnRegisters(lists.load), final=OnRegisters(lists.final), checks=(NAME,))


class OnRegisters(msgspec.Struct, frozen=True):
    """The operations of `child`, which are about lists, on registers."""

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
