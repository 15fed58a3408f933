"""The guarantees of Redis and Valkey, from the documentation, as data; and the options under which each holds."""

from typing import Final

from clusters.redis.rows import NUMBER_BITS
from clusters.redis.service import WAITAOF
from clusters.servers.promises import Documentation
from harness.core.machine import Settings
from harness.core.promises import Naming, Promise, StreamContract

STREAM: Final = StreamContract(
    closed="<=",  # The entry at the ack floor is acknowledged as well.
    cut="position",
    position="offset",
    order_key="global",
    delivery="at-least-once",
    replay="session",
    atomic_unit="transaction",  # One entry has all writes of a transaction.
    identity="position+key+ordinal",
    wm_scope="subscriber",  # The server keeps the progress of a consumer group.
    wm_idle="rests",
    realtime="follows",
)
NAMING: Final = Naming(position="entry {}", watermark="the ack floor {}", logical_bits=NUMBER_BITS, logical_form="id")
_MANAGED: Final = "operate/oss_and_stack/management"
_STREAMS: Final = "develop/data-types/streams/"
_SAFETY: Final = f'{_STREAMS}, "Persistence, replication and message safety"'
_promise: Final = Documentation("REDIS", "https://redis.io/docs/latest/{}, read on 2026-11-28").promise

ISOLATED: Final = _promise(
    1,
    "The commands of a transaction run one after the other, and no other client's run in between.",
    'develop/using-commands/transactions/, "Redis Transactions make two important guarantees"',
    "strict-serializable",
    "real-time-order",
    is_purpose=True,
)
FRESH: Final = _promise(
    2,
    "Clients of the master see everything that was acknowledged: it executes one command at a time.",
    "develop/using-commands/transactions/",
    "stale-acknowledged",
)
DURABLE: Final = _promise(
    3,
    "With appendfsync always a command is on disk before it is answered; with WAITAOF, before that is answered.",
    f'{_MANAGED}/persistence/, "How durable is the append only file?"; commands/waitaof/',
    "lost-acknowledged",
    check="survival",
)
GENUINE: Final = _promise(
    4,
    "Data has what clients have written, once, and nothing else.",
    f'{_MANAGED}/replication/, "How Redis replication works"',
    "phantom-write",
    "duplicate-elements",
    check="survival",
)
DELIVERED: Final = _promise(
    11,
    "A consumer group delivers each entry, and again until it is acknowledged: its state is restored from the file.",
    f'{_STREAMS}, "Consumer groups"; {_SAFETY}',
    "missing-event",
    "lost-tail",
    is_purpose=True,
)
FLOOR: Final = _promise(
    12,
    "A group's last delivered ID, and its pending entries below it, tell exactly what was delivered and acknowledged.",
    f'{_STREAMS}, "Streams observability"; commands/xpending/',
    "late-event",
    "late-event-boundary",
    "watermark-from-future",
    is_purpose=True,
)
KEPT: Final = _promise(
    13, "The file restores the state of a consumer group after a restart.", _SAFETY, "watermark-regress"
)
ORDERED: Final = _promise(
    14, "The IDs of entries ascend, also if the clock goes back.", 'commands/xadd/, "IDs"', "order-inversion"
)
GENUINE_ENTRIES: Final = _promise(15, "Entries show what clients have written.", "commands/xadd/", "phantom-event")
ONE: Final = _promise(
    16,
    "The stream is one: all groups see the same entries.",
    f'{_STREAMS}, "Consumer groups"',
    "split-view",
    "state-mismatch",
)
SHOWN: Final = _promise(
    17,
    "An ID stands for one entry, which has all writes of a transaction, unaltered.",
    'commands/xadd/, "Specifying a Stream ID as an argument"',
    "wrong-value",
    "divergent-duplicate",
    "torn-unit",
)
ALL: Final = (ISOLATED, FRESH, DURABLE, GENUINE, DELIVERED, FLOOR, KEPT, ORDERED, GENUINE_ENTRIES, ONE, SHOWN)
# A failover may lose what was not replicated, and for a while there may be two masters, which use the same IDs.
OF_SENTINEL: Final = (GENUINE, GENUINE_ENTRIES)


def holds(promise: Promise, settings: Settings) -> bool:
    """True if the promise holds with those settings: a server that syncs later may forget what it has shown."""
    if promise is DURABLE and settings.options["confirm"] == WAITAOF:
        return True
    return promise in OF_SENTINEL or settings.options["appendfsync"] == "always"
