"""The restore of a backup: its rows, then the epochs after it from a binlog, as a replica applies them.

The epochs come as far as the binlog has them without an incident. So what is restored is the state of the source after
an epoch: the last one that was applied, or that with which the stop checkpoint ends.
"""

from typing import Final

from clusters.ndb.backup.messages import BackupFile, StartBackup
from clusters.ndb.binlog.messages import SCHEMA, Fetch, Fetched, Locate, Located
from clusters.ndb.replica.applier import Applier
from clusters.ndb.replica.tables import Tables
from clusters.ndb.shape import DATA_NODES, INJECTORS, first_epoch
from harness.core.record import Json
from harness.core.seams import CallFailed, Completion, Connection

BATCHES: Final = 20  # The most questions to a binlog; it may grow as fast as it is read.


async def restored(connection: Connection, turn: int, timeout_ns: int) -> Completion:
    """Take a backup and restore it; `turn` selects the nodes. The value: stop checkpoint, last epoch, lists by key."""
    node, injector = DATA_NODES[turn % len(DATA_NODES)], INJECTORS[turn // len(DATA_NODES) % len(INJECTORS)]
    try:
        backup = await connection.call(node, StartBackup(), timeout_ns)
        if not isinstance(backup, BackupFile):
            return Completion(outcome="fail", error=f"{node}: no backup was taken", node=node)
        tables = Tables(())
        tables.lists.update((key, [*elements]) for key, elements in backup.rows if key != SCHEMA)
        applier = Applier(first_epoch(backup.gci + 1) - 1, frozenset(), is_idempotent=False)
        located = await connection.call(injector, Locate(0, applier.latest), timeout_ns)
        position = located.position if isinstance(located, Located) else 0
        for _ in range(BATCHES):
            answer = await connection.call(injector, Fetch(0, position), timeout_ns)
            if not (isinstance(answer, Fetched) and answer.records and _apply(answer, applier, tables)):
                break
            position += len(answer.records)
    except CallFailed as failure:
        return Completion(outcome="fail", error=str(failure))  # A second try does no harm.
    lists: list[Json] = [[key, [*elements]] for key, elements in tables.lists.items()]
    return Completion(outcome="ok", value=[backup.gci, applier.latest, lists], node=node)


def _apply(fetched: Fetched, applier: Applier, tables: Tables) -> bool:
    """Apply the records of an answer; returns False if an incident ends it."""
    for record in fetched.records:
        transactions = applier.transactions(record)
        if transactions is None:
            return False
        for transaction in transactions:
            tables.commit(transaction)
    return True
