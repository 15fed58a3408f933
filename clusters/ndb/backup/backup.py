"""The backup of a data node: the part that it contributes to any backup, and the lead of those that clients ask it for.

Theory of operation. Each primary logs its changes and scans its rows, one at a time, without locks. So a row is found
as it is at some moment of the scan. The backup is of one moment nevertheless: the end of the stop checkpoint.
1. The stop checkpoint is no earlier than any row that was found: it is chosen when all scans are over. A row of a later
   one would be in the backup, and the transaction's other rows would not.
2. A node sends its part when the stop checkpoint is complete: it has logged every change of it by then. Whoever puts
   the parts together leaves later changes of the log out, and those that the scan had found.
3. A new view ends all backups, as the primaries of rows may have changed. Nothing else waits for a backup.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from clusters.ndb.backup.messages import (
    BackupBegin,
    BackupFile,
    BackupMessage,
    BackupPart,
    BackupScanned,
    BackupStop,
)
from clusters.ndb.binlog.planted import BACKUP_STOP_GCI_EARLY
from clusters.ndb.parts import Site
from clusters.ndb.shape import MS, Key, gci_of
from clusters.ndb.transactions.messages import NODE_FAILED, NOT_STARTED, Refused
from harness.core.machine import Answer, Message, NodeId
from harness.core.record import Json

TIMER: Final = "backup"
ROW_NS: Final = (2 * MS, 25 * MS)  # The time for each row, as the disk is busy.
Read = Callable[[Key], tuple[list[Json], int]]  # A row's elements, and the epoch of the last.


class Scan:
    """What this node contributes to one backup. `stop` is the stop checkpoint, once it is known."""

    def __init__(self, leader: NodeId, number: int, keys: Sequence[Key]) -> None:
        self.leader = leader
        self.number = number
        self.left: deque[Key] = deque(keys)
        self.rows: list[tuple[Key, list[Json]]] = []
        self.log: list[tuple[int, Key, list[Json]]] = []
        self.highest = 0
        self.is_over = False
        self.stop: int | None = None


class Lead:
    """A backup that this node leads, for the call of a client."""

    def __init__(self, number: int, caller: tuple[NodeId, int], nodes: Sequence[NodeId]) -> None:
        self.number = number
        self.caller = caller
        self.scanning = dict.fromkeys(nodes)
        self.sending = dict.fromkeys(nodes)
        self.highest = 0
        self.stop: int | None = None
        self.rows: dict[Key, list[Json]] = {}


class Backup:
    """The backups of one node. `keys` are those of which it is the primary, and `read` reads one."""

    def __init__(self, site: Site, keys: Callable[[], Sequence[Key]], read: Read) -> None:
        self._site = site
        self._keys = keys
        self._read = read
        self._scans: list[Scan] = []
        self._lead: Lead | None = None
        self._number = 0  # The highest number given, in any life: numbers are times.
        self._complete = 0  # The highest epoch that is complete.
        self._has_timer = False
        self._row_ns = 0

    def begin(self, client: NodeId, number: int) -> None:
        """Lead a backup for call `number` of a client. It replaces an earlier one."""
        site = self._site
        self._give_up()
        if not site.may_serve():
            site.send(client, Answer(number, Refused(NOT_STARTED)))
            return
        self._number = max(self._number + 1, site.context.now_ns())
        self._lead = Lead(self._number, (client, number), site.view.nodes())
        site.everyone(BackupBegin(site.view.number, self._lead.number))

    def committed(self, epoch: int, key: Key, values: list[Json]) -> None:
        """Log a change of a row of which this node is the primary."""
        for scan in self._scans:
            scan.log.append((epoch, key, values))

    def complete(self, epoch: int) -> None:
        """Note that no further change of that epoch will come."""
        self._complete = max(self._complete, epoch)
        for scan in tuple(self._scans):
            self._send_part(scan)

    def view_changed(self) -> None:
        """Give up all backups (invariant 3)."""
        self._scans.clear()
        self._give_up()

    def timer(self) -> None:
        """Scan the next row for each backup."""
        self._has_timer = False
        for scan in self._scans:
            if scan.left:
                key = scan.left.popleft()
                elements, epoch = self._read(key)
                scan.rows.append((key, elements))
                scan.highest = max(scan.highest, epoch)
            if not scan.left and not scan.is_over:
                scan.is_over = True
                highest = max(scan.highest, self._site.checkpoints.current)
                self._site.send(scan.leader, BackupScanned(self._site.view.number, scan.number, highest))
        self._watch()

    def handle(self, sender: NodeId, message: Message) -> None:
        """React to the leader, or to the parts of a backup led here. What belongs to another view is dropped."""
        assert isinstance(message, BackupMessage)
        if message.view != self._site.view.number:
            return
        lead = self._lead if self._lead is not None and self._lead.number == message.number else None
        match message:
            case BackupBegin():
                self._scans = [scan for scan in self._scans if scan.leader != sender]
                self._scans.append(Scan(sender, message.number, self._keys()))
                self._row_ns = self._site.context.draw("backup").between(*ROW_NS)
                self._watch()
            case BackupStop():
                for scan in self._scans:
                    if (scan.leader, scan.number) == (sender, message.number):
                        scan.stop = message.gci
                        self._send_part(scan)
                        break
            case BackupScanned() if lead is not None:
                self._scanned(sender, message.highest, lead)
            case BackupPart() if lead is not None:
                self._add(sender, message, lead)
            case _:
                pass

    def _watch(self) -> None:
        if not self._has_timer and any(not scan.is_over for scan in self._scans):
            self._has_timer = True
            self._site.context.set_timer(TIMER, self._row_ns)

    def _send_part(self, scan: Scan) -> None:
        """Invariant 2."""
        if scan.stop is not None and gci_of(self._complete) > scan.stop:
            self._scans.remove(scan)
            part = BackupPart(self._site.view.number, scan.number, tuple(scan.rows), tuple(scan.log))
            self._site.send(scan.leader, part)

    def _scanned(self, sender: NodeId, highest: int, lead: Lead) -> None:
        """Choose the stop checkpoint when all scans are over (invariant 1)."""
        site = self._site
        lead.scanning.pop(sender, None)
        if lead.stop is None or BACKUP_STOP_GCI_EARLY not in site.bugs:
            lead.highest = max(lead.highest, highest, site.checkpoints.current)
            lead.stop = gci_of(lead.highest)
        if not lead.scanning:
            site.context.point("before-backup-stop")
            site.everyone(BackupStop(site.view.number, lead.number, lead.stop))

    def _add(self, sender: NodeId, part: BackupPart, lead: Lead) -> None:
        """Enter a part; with the last one the backup is complete."""
        assert lead.stop is not None
        lead.sending.pop(sender, None)
        lead.rows.update((key, [*elements]) for key, elements in part.rows)
        for epoch, key, elements in part.log:
            held = lead.rows.setdefault(key, [])
            if gci_of(epoch) <= lead.stop:
                held.extend(element for element in elements if element not in held)
        if not lead.sending:
            self._site.context.sometimes("a backup was complete")
            self._answer(BackupFile(lead.stop, tuple((key, held) for key, held in lead.rows.items() if held)))

    def _give_up(self) -> None:
        if self._lead is not None:
            self._site.context.sometimes("a backup was given up")
            self._answer(Refused(NODE_FAILED))

    def _answer(self, answer: Message) -> None:
        lead, self._lead = self._lead, None
        if lead is not None:
            client, number = lead.caller
            self._site.send(client, Answer(number, answer))
