"""The workloads, by name: what to ask of a system, and which checkers can judge the answers."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from harness.core.seams import Workload
from harness.workloads.list_append import list_append
from harness.workloads.options import WorkloadOptions

__all__ = ["WORKLOADS", "WorkloadOptions"]

WORKLOADS: Mapping[str, Callable[[WorkloadOptions], Workload]] = MappingProxyType({"list-append": list_append})
