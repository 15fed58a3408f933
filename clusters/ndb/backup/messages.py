"""Messages of a backup. `number` is that of the backup, given by the node that leads it; `view` is the sender's."""

from msgspec import Struct

from clusters.ndb.shape import Key
from harness.core.record import Json


class StartBackup(Struct, frozen=True, tag=True):
    """Client to any data node: take a backup."""


class BackupFile(Struct, frozen=True, tag=True):
    """The answer: all rows with what was committed up to the end of that global checkpoint."""

    gci: int
    rows: tuple[tuple[Key, list[Json]], ...]


class BackupBegin(Struct, frozen=True, tag=True):
    """Log the changes, and scan the rows, of which you are the primary."""

    view: int
    number: int


class BackupScanned(Struct, frozen=True, tag=True):
    """All rows are scanned. No row that was found is of a later epoch than `highest`."""

    view: int
    number: int
    highest: int


class BackupStop(Struct, frozen=True, tag=True):
    """Send your part when that global checkpoint is complete."""

    view: int
    number: int
    gci: int


class BackupPart(Struct, frozen=True, tag=True):
    """The rows as they were found, and the changes logged since, in their order, each with its epoch."""

    view: int
    number: int
    rows: tuple[tuple[Key, list[Json]], ...]
    log: tuple[tuple[int, Key, list[Json]], ...]


BackupMessage = BackupBegin | BackupScanned | BackupStop | BackupPart
BACKUP_MESSAGES: tuple[type, ...] = (BackupBegin, BackupScanned, BackupStop, BackupPart)
