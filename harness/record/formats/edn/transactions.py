"""Records of plain transactions, as `harness.record.formats.edn.jepsen` makes them map by map, at less cost."""

from collections.abc import Iterable
from itertools import chain
from operator import attrgetter
from typing import Final

from harness.core.record import Complete, Invoke, Json, MicroOp
from harness.record.formats.edn.plain import PlainTransaction
from harness.record.formats.parquet.operations import Row, is_identical

_F = attrgetter("f")
_SIMPLE: Final = {int, str}  # Values of one of these types are the same JSON if they are equal.


def invocation(event: PlainTransaction, index: int, number: int) -> Invoke:
    """The invocation in map `number` of its file."""
    time_ns = number if event.time is None else event.time
    mops = tuple([MicroOp(step.f, step.key, None if step.f == "r" else step.value) for step in event.value])
    return Invoke(index, time_ns, time_ns, event.process or 0, "txn", None, mops)


def completion(event: PlainTransaction, index: int, number: int, *, is_of_lists: bool) -> Complete:
    """The completion of operation `index`, which is map `number` of its file. It is not compared with its request."""
    time_ns = number if event.time is None else event.time
    mops: tuple[MicroOp, ...] | None = tuple([MicroOp(step.f, step.key, step.value) for step in event.value])
    if event.type == "ok":
        if is_of_lists and any([step.value is None for step in event.value]):  # noqa: C419  A list is faster.
            mops = tuple([MicroOp("r", m.key, []) if m.f == "r" and m.value is None else m for m in mops or ()])
    elif not any([step.f == "r" and step.value is not None for step in event.value]):  # noqa: C419  Likewise.
        mops = None
    return Complete(index, time_ns, event.type, None, mops, event.error)  # type: ignore[arg-type]  # No invocation.


def are_answers(rows: Iterable[Row], events: Iterable[PlainTransaction]) -> bool:
    """True if each completion fits its row's request: the same transaction, except for the results of reads."""
    requests = [row.invoke.mops or () for row in rows]
    answers = [event.value for event in events]
    requested, answered = list(chain.from_iterable(requests)), list(chain.from_iterable(answers))
    if list(map(len, requests)) != list(map(len, answers)) or list(map(_F, requested)) != list(map(_F, answered)):
        return False
    keys = [[step.key for step in steps] for steps in (requested, answered)]
    values = [[step.value for step in steps if step.f != "r"] for steps in (requested, answered)]
    return _are_identical(*keys) and _are_identical(*values)


def _are_identical(some: list[Json], others: list[Json]) -> bool:
    """True if they are the same JSON, in order."""
    types = list(map(type, some))
    if set(types) <= _SIMPLE:
        return some == others and types == list(map(type, others))
    return all(map(is_identical, some, others))
