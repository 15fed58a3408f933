"""The `Context` of a machine in either runtime. It collects effects, which the machine's host carries out later."""

from collections.abc import Callable
from typing import Any, Protocol

from harness.core.machine import Delivery, Dump, Message, NodeId, Randomness

Effect = tuple[Callable[[Any, Any], object], object, object]  # A method of `Actions`, and its two arguments.


class Actions(Protocol):
    """A host's operations for its machine. The first group runs at once; the second group is collected as effects."""

    def now_ns(self) -> int: ...
    def local_clock_ns(self) -> int: ...
    def draw(self, name: str) -> Randomness: ...
    def queued(self, to: NodeId, to_come: int) -> int: ...
    def count_unexpected(self) -> None: ...

    def transmit(self, to: NodeId, message: Message) -> object: ...
    def start_timer(self, name: str, after_ns: int) -> None: ...
    def stop_timer(self, name: str, _: None) -> None: ...
    def write_append(self, log: str, record: Message) -> None: ...
    def write_truncate(self, log: str, index: int) -> None: ...
    def write_put(self, key: str, value: Message) -> None: ...
    def start_sync(self, token: int, _: None) -> None: ...
    def record_delivery(self, delivery: Delivery, _: None) -> None: ...
    def record_probe(self, name: str, value: int) -> None: ...
    def record_state(self, state: Dump, _: None) -> None: ...
    def end_process(self, after_ns: int, _: None) -> None: ...
    def reach_goal(self, goal: str, _: None) -> None: ...
    def reach_point(self, name: str, _: None) -> None: ...


class CollectingContext:
    """A machine's context. `effects` has those of the current method, in order; the host empties it."""

    def __init__(self, node: NodeId, actions: Actions) -> None:
        self.node = node
        self.effects: list[Effect] = []
        self.to_send: dict[NodeId, int] = {}  # Messages among the effects, by address.
        self._actions = actions
        self._transmit = actions.transmit
        # As the machine calls these often, they are the host's own methods.
        self.now_ns, self.local_clock_ns, self.draw = actions.now_ns, actions.local_clock_ns, actions.draw

    def send(self, to: NodeId, message: Message) -> None:
        self.to_send[to] = self.to_send.get(to, 0) + 1
        self.effects.append((self._transmit, to, message))

    def queued(self, to: NodeId) -> int:
        return self._actions.queued(to, self.to_send.get(to, 0))

    def set_timer(self, name: str, after_ns: int) -> None:
        self.effects.append((self._actions.start_timer, name, after_ns))

    def cancel_timer(self, name: str) -> None:
        self.effects.append((self._actions.stop_timer, name, None))

    def append(self, log: str, record: Message) -> None:
        self.effects.append((self._actions.write_append, log, record))

    def truncate(self, log: str, index: int) -> None:
        self.effects.append((self._actions.write_truncate, log, index))

    def put(self, key: str, value: Message) -> None:
        self.effects.append((self._actions.write_put, key, value))

    def sync(self, token: int) -> None:
        self.effects.append((self._actions.start_sync, token, None))

    def deliver(self, delivery: Delivery) -> None:
        self.effects.append((self._actions.record_delivery, delivery, None))

    def probe(self, name: str, value: int) -> None:
        self.effects.append((self._actions.record_probe, name, value))

    def sometimes(self, goal: str) -> None:
        self.effects.append((self._actions.reach_goal, goal, None))

    def point(self, name: str) -> None:
        self.effects.append((self._actions.reach_point, name, None))

    def dump(self, state: Dump) -> None:
        self.effects.append((self._actions.record_state, state, None))

    def exit(self, after_ns: int) -> None:
        self.effects.append((self._actions.end_process, after_ns, None))

    def unexpected(self, message: Message) -> None:
        self._actions.count_unexpected()
