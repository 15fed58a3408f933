"""Decides whether a healed system becomes available within its settling bound.

Theory of operation. There are as many final operations as keys, so those of a long run, or of a slow system, may take
longer than the bound although each succeeds. What the bound limits is the time without success:
1. That long after healing, or after the latest success, some final operation must have succeeded.
2. An operation that begins after the bound must succeed, at the latest that long after it was first tried.
"""

import msgspec

from harness.core.record import Complete, Invoke


class Settling:
    """The final operations of a run whose system was healed at `healed_ns`."""

    def __init__(self, healed_ns: int, settle_ns: int) -> None:
        self._settle_ns = settle_ns
        self._available_ns = healed_ns + settle_ns
        self._succeeded_ns = healed_ns
        self._failing: dict[bytes, int] = {}  # Operations that did not succeed, and when each was first tried.
        self._is_given_up = False

    @property
    def deadline_ns(self) -> int:
        """The time at which a system without another success has not settled."""
        return self._succeeded_ns + self._settle_ns

    def observe(self, invoke: Invoke, complete: Complete) -> None:
        """Take in an operation that has ended."""
        operation = msgspec.msgpack.encode((invoke.f, invoke.value, invoke.mops))
        if complete.outcome == "ok":
            self._succeeded_ns = max(self._succeeded_ns, complete.time_ns)
            self._failing.pop(operation, None)
            return
        tried_ns = self._failing.setdefault(operation, invoke.time_ns)
        began_late = invoke.time_ns >= self._available_ns
        self._is_given_up |= began_late and complete.time_ns - tried_ns >= self._settle_ns

    def has_failed(self, now_ns: int) -> bool:
        """True if the system has not settled."""
        return self._is_given_up or now_ns >= self.deadline_ns
