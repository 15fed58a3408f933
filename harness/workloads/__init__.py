"""The workloads, by name: what to ask of a system, and which checkers can judge the answers."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from harness.core.seams import Workload
from harness.workloads.list_append import list_append
from harness.workloads.options import WorkloadOptions
from harness.workloads.populations import CHURN, COUNTER, LIST_APPEND, LIST_APPEND_LOCKED, NDB_MIX, TWO_KEYS, Mix

__all__ = ["WORKLOADS", "WorkloadOptions"]

_MIXES: Mapping[str, Mix] = MappingProxyType(
    {
        "list-append": LIST_APPEND,
        "list-append-locked": LIST_APPEND_LOCKED,
        "two-keys": TWO_KEYS,
        "counter": COUNTER,
        "churn": CHURN,
        "ndb-mix": NDB_MIX,
    }
)
WORKLOADS: Mapping[str, Callable[[WorkloadOptions], Workload]] = MappingProxyType(
    {name: partial(list_append, name, mix) for name, mix in _MIXES.items()}
)
