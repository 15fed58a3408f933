"""The options common to all workloads."""

from dataclasses import dataclass

from harness.core.errors import require

SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOptions:
    """The options of a workload: rate, time and number of keys. A workload uses those that concern it."""

    seed: int
    rate_per_s: float  # Operations due per second, over all threads.
    duration_ns: int
    threads: int
    key_count: int = 8  # Keys in use at one time.
    max_txn_length: int = 4  # Micro-operations of one transaction.
    max_appends_per_key: int = 48  # A key is replaced after this many appends, or after a quarter of that.

    def __post_init__(self) -> None:
        require(0 < self.rate_per_s <= SECOND, f"rate_per_s is {self.rate_per_s}: it must be above 0", self)
        require(self.duration_ns > 0, f"duration_ns is {self.duration_ns}: it must be above 0", self)
        require(self.threads > 0, f"threads is {self.threads}: it must be at least 1", self)
        require(1 <= self.key_count <= 1000, f"key_count is {self.key_count}: it must be from 1 to 1000", self)
        require(
            1 <= self.max_txn_length <= 64, f"max_txn_length is {self.max_txn_length}: it must be from 1 to 64", self
        )
        require(
            self.max_appends_per_key >= 4,
            f"max_appends_per_key is {self.max_appends_per_key}: it must be at least 4",
            self,
        )

    @property
    def mean_gap_ns(self) -> int:
        """The mean time from one operation to the next."""
        return max(1, int(SECOND / self.rate_per_s))
