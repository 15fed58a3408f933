"""Waits until a node is ready, and says so if that takes long."""

import time
from typing import Final

from harness.core.errors import DeployError
from harness.runtimes.child import note
from harness.runtimes.containers.crew import NodeContainer
from harness.runtimes.containers.engine.calls import in_thread, tail_of
from harness.runtimes.containers.faults.site import PAUSED

_POLL_S: Final = 0.5
NOTE_AFTER_S: Final = 10.0


async def ready(each: NodeContainer, within_s: float) -> None:
    """Wait until the node is ready, or has been killed again. Time in which it is paused does not count.

    A fault that begins meanwhile, such as a full disk, may let the node end; that fault starts it again. After ten
    seconds the user is shown a note, once. Raises DeployError if the node never becomes ready.
    """
    began_s = time.monotonic()
    is_noted = False
    while not await each.control.ready(_POLL_S):
        await in_thread(each.container.reload)
        if each.is_down:
            return
        if each.container.status == PAUSED:
            began_s = time.monotonic()
            continue
        if each.container.status != "running" and each.may_end:
            return
        waited_s = time.monotonic() - began_s
        if each.container.status != "running" or waited_s > within_s:
            tail = await in_thread(tail_of, each.container)
            raise DeployError(f"node {each.node} is {each.container.status} and not ready; it said: {tail}")
        if waited_s > NOTE_AFTER_S and not is_noted:
            is_noted = True
            note(
                f"{each.node} is not ready after {waited_s:.0f} s; it said: {await in_thread(tail_of, each.container)}"
            )
