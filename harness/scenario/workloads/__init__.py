"""The workloads, by name: the operations for a system, and the checkers that can judge their results."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from harness.core.seams import Workload
from harness.scenario.workloads.bank import BANK
from harness.scenario.workloads.blocks import BLOCKS, LEASES, RETENTION, REWINDS, SEALED, SEQUENCES, blocks
from harness.scenario.workloads.cas_register import cas_register
from harness.scenario.workloads.counter import counter
from harness.scenario.workloads.grouped import Design, Locking, grouped
from harness.scenario.workloads.list_append import list_append
from harness.scenario.workloads.long_fork import LONG_FORK
from harness.scenario.workloads.monotonic import MONOTONIC
from harness.scenario.workloads.options import WorkloadOptions
from harness.scenario.workloads.populations import (
    CHURN,
    LIST_APPEND,
    LIST_APPEND_LOCKED,
    NDB_MIX,
    SINGLE_KEY,
    TWO_KEYS,
    Mix,
)
from harness.scenario.workloads.replicated.epochs import BACKUPS_LOAD, EPOCHS_LOAD, HOT_EPOCHS_LOAD, SCHEMAS_LOAD
from harness.scenario.workloads.replicated.outcomes import LARGE_LOAD, OUTCOMES_LOAD, SESSIONS_LOAD
from harness.scenario.workloads.replicated.primaries import primaries
from harness.scenario.workloads.replicated.row_churn import row_churn
from harness.scenario.workloads.restores import restores
from harness.scenario.workloads.rw_register import rw_register
from harness.scenario.workloads.sets import SETS
from harness.scenario.workloads.timestamped.tables import (
    DDL_LOAD,
    SOURCES_LOAD,
    TABLES_LOAD,
    TIMELINES_LOAD,
    VIEWS_LOAD,
)
from harness.scenario.workloads.wide_writes import CHANGES, LARGE_VS_TICK, PUSHER, stale_reads, wide_writes
from harness.scenario.workloads.write_skew import WRITE_SKEW

__all__ = ["WORKLOADS", "WorkloadOptions"]

_MIXES: Mapping[str, Mix] = MappingProxyType(
    {
        "list-append": LIST_APPEND,
        "list-append-locked": LIST_APPEND_LOCKED,
        "two-keys": TWO_KEYS,
        "ndb-mix": NDB_MIX,
    }
)
_DESIGNS: Mapping[str, tuple[Design, Locking]] = MappingProxyType(
    {
        "bank": (BANK, "none"),
        "bank-locked": (BANK, "locked"),
        "sets": (SETS, "none"),
        "monotonic": (MONOTONIC, "none"),
        "long-fork": (LONG_FORK, "none"),
        "long-fork-locked": (LONG_FORK, "locked"),
        "write-skew": (WRITE_SKEW, "none"),
        "write-skew-locked": (WRITE_SKEW, "locked"),
    }
)
_WIDE: Mapping[str, Design] = MappingProxyType({"large-vs-tick": LARGE_VS_TICK, "pusher": PUSHER})
WORKLOADS: Mapping[str, Callable[[WorkloadOptions], Workload]] = MappingProxyType(
    {"counter": counter, "cas-register": cas_register, "rw-register": rw_register, "restores": restores}
    | {"primaries": primaries, "row-churn": row_churn}
    | {name: partial(stale_reads, name, changes) for name, changes in (("stale-reads", ()), ("region-churn", CHANGES))}
    | {name: partial(wide_writes, name, design) for name, design in _WIDE.items()}
    | {
        "txn-blocks": partial(blocks, "txn-blocks", BLOCKS),
        "keyed-sequence": partial(blocks, "keyed-sequence", SEQUENCES),
        "leases": partial(blocks, "leases", LEASES),
        "retention": partial(blocks, "retention", RETENTION),
        "seal-under-load": partial(blocks, "seal-under-load", SEALED),
        "rewinds": partial(blocks, "rewinds", REWINDS),
    }
    | {
        "tables": TABLES_LOAD,
        "views": VIEWS_LOAD,
        "sources": SOURCES_LOAD,
        "ddl": DDL_LOAD,
        "timelines": TIMELINES_LOAD,
        "outcomes": OUTCOMES_LOAD,
        "large": LARGE_LOAD,
        "sessions": SESSIONS_LOAD,
        "epochs": EPOCHS_LOAD,
        "hot-epochs": HOT_EPOCHS_LOAD,
        "schemas": SCHEMAS_LOAD,
        "backups": BACKUPS_LOAD,
    }
    | {
        "churn": partial(list_append, "churn", CHURN, is_single=True),
        "single-key": partial(list_append, "single-key", SINGLE_KEY, is_single=True),
    }
    | {name: partial(list_append, name, mix) for name, mix in _MIXES.items()}
    | {name: partial(grouped, name, design, locking) for name, (design, locking) in _DESIGNS.items()}
)
