"""The guarantees of NATS JetStream, from its documentation, as data; and the options under which each holds."""

from typing import Final

from clusters.servers.promises import Documentation
from harness.core.machine import Settings
from harness.core.promises import Promise, StreamContract

STREAM: Final = StreamContract(
    closed="<=",  # The message at the ack floor is acknowledged as well.
    cut="position",
    position="offset",
    order_key="none",  # A message that was lost on its way comes after later ones.
    delivery="at-least-once",
    replay="session",
    atomic_unit="none",
    unit_rows="final",
    identity="position+key",
    wm_scope="subscriber",  # The servers keep the floor of a durable consumer.
    wm_idle="rests",
    realtime="follows",
    positions="dense",  # The consumers have no filter.
)
_DOCS: Final = "https://docs.nats.io/"
_STREAMS: Final = f"{_DOCS}nats-concepts/jetstream"
_CONSUMERS: Final = f"{_DOCS}nats-concepts/jetstream/consumers"
_promise: Final = Documentation("NATS", "{}, read on 2026-11-27").promise

WRITES: Final = _promise(
    1,
    "Publications are linearizable: each message has its place in one global order, which agrees with real time.",
    f'{_STREAMS}, "Persistent and Consistent distributed storage"',
    "serializable",
    "real-time-order",
    is_purpose=True,
)
DURABLE: Final = _promise(
    2,
    "An acknowledged message is persisted; with sync_interval always, on disk.",
    f'{_DOCS}using-nats/developer/develop_jetstream, and {_STREAMS}, "Syncing data to disk"',
    "lost-acknowledged",
    check="survival",
)
GENUINE: Final = _promise(
    3,
    "The stream has what clients have published, and nothing else.",
    f'{_STREAMS}, "Persistent and Consistent distributed storage"',
    "phantom-write",
    check="survival",
)
OF_STREAM: Final = (
    _promise(
        11,
        "A message is delivered until it is acknowledged: at least once.",
        f'{_CONSUMERS}, "AckPolicy"',
        "missing-event",
        "lost-tail",
        "skipped-position",
        is_purpose=True,
    ),
    _promise(
        12,
        "The ack floor is the highest sequence up to which every message was acknowledged.",
        f'{_DOCS}reference/reference-protocols/nats_api_reference, "Consumer info"',
        "late-event",
        "late-event-boundary",
        "watermark-from-future",
        is_purpose=True,
    ),
    _promise(
        13,
        "The servers keep the state of a durable consumer.",
        f'{_CONSUMERS}, "Durable name"',
        "watermark-regress",
    ),
    _promise(
        14,
        "Messages show what was published, under the sequence that was acknowledged.",
        f'{_STREAMS}, "Persistent and Consistent distributed storage"',
        "phantom-event",
        "wrong-value",
        "divergent-duplicate",
    ),
    _promise(
        15,
        "The stream is one: all consumers see the same message at a sequence.",
        f'{_STREAMS}, "Persistent and Consistent distributed storage"',
        "split-view",
        "state-mismatch",
    ),
)
ALL: Final = (WRITES, DURABLE, GENUINE, *OF_STREAM)


def holds(promise: Promise, settings: Settings) -> bool:
    """True if the promise holds with those settings: a server that syncs later may forget what it acknowledged."""
    return promise is GENUINE or settings.options["sync"] == "always"
