"""The server for each node: the primary, or its physical standby, with the settings that a test needs.

The standby's folder is a copy of the primary, made on its first start (`start-postgres` in the image's recipe).
fsync, full_page_writes and synchronous_commit stay on, unless a planted bug turns the first off.
"""

from typing import Final

from clusters.postgres import planted
from harness.core.machine import NodeId, Settings
from harness.core.seams import Address, Doors, Service

PRIMARY: Final = NodeId("n1")
STANDBY: Final = NodeId("n2")
USER: Final = "seamark"
DATABASE: Final = "postgres"
PORT: Final = 5432
SYNC: Final = "sync"
# The request for encryption, which a server answers with one byte in any state.
HELLO: Final = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
FOLDER: Final = "/var/lib/postgresql/seamark"

_ALWAYS: Final = {
    "wal_level": "logical",
    "hot_standby": "on",
    "max_connections": "200",
    "shared_buffers": "64MB",
    # A client that is cut off holds locks no longer than this; one that closed its connection, until this is noticed.
    "idle_in_transaction_session_timeout": "5s",
    "client_connection_check_interval": "500ms",
    "deadlock_timeout": "100ms",
    # A crash is followed by a sync of the whole folder: of its file system at once, not of a thousand single files.
    "recovery_init_sync_method": "syncfs",
    # A broken replication connection is noticed, and its slot free again, well within the time to settle.
    "wal_sender_timeout": "8s",
    "wal_receiver_timeout": "8s",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "500ms",
}


def service(node: NodeId, peers: Doors, settings: Settings) -> Service:
    """The primary, or a standby that dials the primary at its address in `peers`."""
    of_node = _of_standby(peers) if node == STANDBY else _of_primary(settings)
    return Service(
        image="seamark-postgres",
        port=PORT,
        hello=HELLO,
        folder=FOLDER,
        command=_arguments(_ALWAYS | _synced(settings) | of_node),
        environment={"STANDBY_OF": conninfo(peers[PRIMARY]), "SLOT": STANDBY} if node == STANDBY else {},
    )


def conninfo(address: Address, **more: str) -> str:
    """The connection string of a server; `more` are further options, without blanks or quotes."""
    words = {"host": address.host, "port": str(address.port), "user": USER, "dbname": DATABASE, **more}
    return " ".join(f"{name}={value}" for name, value in words.items())


def _of_primary(settings: Settings) -> dict[str, str]:
    is_sync = settings.options.get("replication") == SYNC
    return {"synchronous_standby_names": STANDBY} if is_sync else {}


def _synced(settings: Settings) -> dict[str, str]:
    return {"fsync": "off"} if planted.FSYNC_OFF in settings.bugs else {}


def _of_standby(peers: Doors) -> dict[str, str]:
    source = conninfo(peers[PRIMARY], application_name=STANDBY, connect_timeout="5")
    return {"primary_conninfo": source, "primary_slot_name": STANDBY}


def _arguments(options: dict[str, str]) -> tuple[str, ...]:
    return tuple(word for name, value in options.items() for word in ("-c", f"{name}={value}"))
