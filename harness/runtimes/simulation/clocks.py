"""A node's own wall clock: it may be skewed, drift, step and freeze. Integers only: the same on every computer.

1. Without a fault it shows the time of the run plus a constant skew.
2. A fault steps it at once, and changes its rate from then on; the faults in force add up.
3. When a fault ends, the clock is corrected, as a time daemon would do; other faults continue from there.
4. A wrong clock does nothing until a machine reads it: each reading that is wrong counts for all faults in force.
"""

from dataclasses import dataclass
from typing import Final

_MILLION: Final = 1_000_000


@dataclass(eq=False, slots=True, kw_only=True)
class ClockFault:
    """One fault of a clock: `step_ns` once, `drift_ppm` while it is in force; or the clock freezes.

    `wrong_readings` counts the wrong readings of the clock, and `error_ns_max` is the largest error among them.
    """

    step_ns: int = 0
    drift_ppm: int = 0
    is_frozen: bool = False
    wrong_readings: int = 0
    error_ns_max: int = 0


class LocalClock:
    """The clock of one node. All times are nanoseconds; `now_ns` is the time of the run."""

    def __init__(self, skew_ns: int) -> None:
        self._skew_ns = skew_ns
        self._faults: list[ClockFault] = []
        self._set_at_ns = 0  # The time of the run at which it was last set,
        self._set_to_ns = skew_ns  # and the value it then showed.
        self._drift_ppm = 0
        self._is_frozen = False

    def read_ns(self, now_ns: int) -> int:
        """The reading of the clock."""
        if self._is_frozen:
            return self._set_to_ns
        elapsed_ns = now_ns - self._set_at_ns
        return self._set_to_ns + elapsed_ns + elapsed_ns * self._drift_ppm // _MILLION

    def tell_ns(self, now_ns: int) -> int:
        """The reading for a machine, which may act on it; counts wrong readings (4)."""
        error_ns = abs(self.error_ns(now_ns)) if self._faults else 0
        if error_ns:
            for fault in self._faults:
                fault.wrong_readings += 1
                fault.error_ns_max = max(fault.error_ns_max, error_ns)
        return self.read_ns(now_ns)

    def error_ns(self, now_ns: int) -> int:
        """The difference between the clock and its reading without faults."""
        return self.read_ns(now_ns) - now_ns - self._skew_ns

    def begin(self, fault: ClockFault, now_ns: int) -> None:
        """Put the fault into force."""
        self._faults.append(fault)
        self._set(now_ns, self.read_ns(now_ns) + fault.step_ns)

    def end(self, fault: ClockFault, now_ns: int) -> None:
        """Correct the clock (3). Does nothing if the fault is already over."""
        if fault in self._faults:
            self._faults.remove(fault)
            self._set(now_ns, now_ns + self._skew_ns)

    def _set(self, now_ns: int, local_ns: int) -> None:
        self._set_at_ns, self._set_to_ns = now_ns, local_ns
        self._drift_ppm = sum(fault.drift_ppm for fault in self._faults)
        self._is_frozen = any(fault.is_frozen for fault in self._faults)
