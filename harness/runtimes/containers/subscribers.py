"""Subscribers of services: tasks of the harness, which can crash, freeze and be slow like containers.

A subscriber is created again at each start, with its kept state. Its sessions are numbered here. A delivery is recorded
before the call returns; one that a crash interrupts counts as not delivered.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec

from harness.core.errors import DeployError
from harness.core.machine import Delivery, NodeId
from harness.core.seams import Subscriber
from harness.runtimes.containers.foreign import Foreign
from harness.runtimes.host.control import Clocks, Counters, FromHarness, Slow

_AGAIN_S: Final = 0.2
_CANCEL_AGAIN_S: Final = 0.05
Make = Callable[[NodeId, dict[str, object]], Subscriber]


@dataclass(slots=True, kw_only=True)
class SubscriberPlace:
    """One subscriber, its task, and the state that survives a crash."""

    node: NodeId
    control: "SubscriberControl"
    is_down: bool = True
    may_end: bool = False
    folder: str = "/nonexistent"  # A subscriber has no disk to fill.
    kept: dict[str, object] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None


class Subscribers:
    """All subscribers of a run. `record` takes their deliveries, `fail` an exception that is not a link error."""

    def __init__(
        self, make: Make, record: Callable[[NodeId, Delivery], None], fail: Callable[[NodeId, str], None]
    ) -> None:
        self._make, self._record, self._fail = make, record, fail
        self.places: dict[NodeId, SubscriberPlace] = {}

    def start(self, node: NodeId) -> None:
        """Start the subscriber, with its kept state."""
        place = self.places.setdefault(node, SubscriberPlace(node=node, control=SubscriberControl(node)))
        if not place.is_down:
            return
        place.is_down = False
        place.control.life += 1
        place.task = asyncio.create_task(self._live(place), name=f"subscriber {node}")

    async def kill(self, node: NodeId) -> None:
        """Stop the subscriber at once; state that it did not keep is lost."""
        place = self.places[node]
        place.is_down = True
        # Again until it ends: a library may swallow a cancellation, as asyncio.wait_for does in Python 3.11 if what it
        # waits for is done at that moment.
        while place.task is not None and not place.task.done():
            place.task.cancel()
            await asyncio.wait((place.task,), timeout=_CANCEL_AGAIN_S)

    def pause(self, node: NodeId) -> None:
        """Freeze the subscriber: it handles no more events."""
        self.places[node].control.gate.clear()

    def unpause(self, node: NodeId) -> None:
        """Unfreeze the subscriber."""
        self.places[node].control.gate.set()

    async def close(self) -> None:
        """Stop all subscribers."""
        for node in self.places:
            await self.kill(node)

    async def _live(self, place: SubscriberPlace) -> None:
        control = place.control
        try:
            subscriber = self._make(place.node, place.kept)
            while True:
                session, control.session = control.session, control.session + 1
                with suppress(OSError):  # No connection can be opened, or it broke: the next session tries again.
                    await subscriber.receive(partial(self._deliver, place, session))
                await asyncio.sleep(_AGAIN_S)
        except Exception as error:  # noqa: BLE001  Whatever the error, the run cannot continue without this subscriber.
            self._fail(place.node, f"subscriber {place.node} failed: {type(error).__name__}: {error}")

    async def _deliver(self, place: SubscriberPlace, session: int, delivery: Delivery) -> None:
        control = place.control
        if not control.gate.is_set():
            control.deferred += 1
            await control.gate.wait()
        if control.delay_s:
            control.delayed += 1
            await asyncio.sleep(control.delay_s)
        control.handled += 1
        self._record(place.node, msgspec.structs.replace(delivery, session=session))


class SubscriberControl(Foreign):
    """The `Control` of a subscriber."""

    def __init__(self, node: NodeId) -> None:
        super().__init__(node)
        self.session = 0  # The number of the next session.
        self.gate = asyncio.Event()
        self.gate.set()
        self.delay_s = 0.0
        self.handled = self.delayed = self.deferred = 0

    async def clocks(self) -> Clocks:
        """Raise DeployError, as a subscriber has no clock; while frozen, do not answer."""
        await self.gate.wait()
        raise DeployError("a subscriber has no clock")

    async def counters(self) -> Counters:
        """The counts over all its lives."""
        return self.total()

    def total(self) -> Counters:
        """The counts over all its lives."""
        return Counters(0, self.handled, 0, self.delayed, {}, {}, self.deferred)

    async def ready(self, within_s: float) -> bool:
        """True: a subscriber needs no time to start."""
        return True

    def tell(self, message: FromHarness) -> None:
        """Set the subscriber's slowness."""
        if isinstance(message, Slow):
            self.delay_s = message.delay_ns / 1e9
