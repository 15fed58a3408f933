"""Deliberate bugs of injectors, replicas and backups: each read in one or two places. See clusters/ndb/planted.py."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

INJECTOR_IGNORES_INCONSISTENT: Final = "injector-ignores-inconsistent"
BINLOG_EPOCH_SPLIT: Final = "binlog-epoch-split"
APPLY_STATUS_SEPARATE: Final = "apply-status-separate"
APPLY_STATUS_BEFORE: Final = "apply-status-before"
INDEX_BEFORE_BINLOG: Final = "index-before-binlog"
SWITCH_TO_FIRST_GREATER: Final = "switch-to-first-greater"
SWITCH_IGNORES_GAP: Final = "switch-ignores-gap"
APPLIER_PARALLEL_NO_HASH: Final = "applier-parallel-no-hash"
BACKUP_STOP_GCI_EARLY: Final = "backup-stop-gci-early"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        INJECTOR_IGNORES_INCONSISTENT: "B31: an injector writes no incident for an epoch whose rows are missing",
        BINLOG_EPOCH_SPLIT: "B46: an epoch with many rows is two transactions of the binlog",
        APPLY_STATUS_SEPARATE: "B47: a replica commits its position after the epoch's rows, not with them",
        APPLY_STATUS_BEFORE: "B48: a replica commits its position before the epoch's rows",
        INDEX_BEFORE_BINLOG: "B49: an injector indexes an epoch before the epoch's transaction is durable",
        SWITCH_TO_FIRST_GREATER: "B50: a channel begins at the next indexed epoch, behind what follows the last one",
        SWITCH_IGNORES_GAP: "B51: a new channel ignores incidents before its first epoch",
        APPLIER_PARALLEL_NO_HASH: "B54: a replica deals the rows of an epoch to two workers without regard to keys",
        BACKUP_STOP_GCI_EARLY: "B62: a backup ends with the checkpoint in which the first node has scanned its rows",
    }
)
