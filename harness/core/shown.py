"""History records made from a machine's deliveries and dumps. Both runtimes stamp and number them."""

from typing import cast

from harness.core.machine import Delivery, Dump, NodeId
from harness.core.record import Json, State, StreamEvent


def stream_event(now_ns: int, node: NodeId, number: int, delivery: Delivery) -> StreamEvent:
    """The record of an event that a subscriber received, as event `number` of its session, from 0."""
    return StreamEvent(
        time_ns=now_ns,
        subscriber=node,
        session=delivery.session,
        number=number,
        kind=delivery.kind,
        span=delivery.span,
        key=cast("Json", delivery.key),
        value=cast("Json", delivery.value),
        position=delivery.position,
        ordinal=delivery.ordinal,
        epoch=delivery.epoch,
        unit=delivery.unit,
        unit_rows=delivery.unit_rows,
    )


def state(now_ns: int, node: NodeId, dump: Dump) -> State:
    """The record of one object of a node's state."""
    key, value = cast("Json", dump.key), cast("Json", dump.value)
    return State(now_ns, node, dump.object, key, value, dump.position, dump.txn)
