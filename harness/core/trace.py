"""A trace: all that happened in some moments of a run, down to each message. An object a line in trace.jsonl."""

import re
from decimal import Decimal
from typing import Final, Literal

import msgspec

from harness.core.errors import ScenarioError
from harness.core.record import Json

What = Literal[
    # Messages: `number` is the same for all that concerns one message.
    "send",
    "deliver",  # It has reached the other end, whose inbox holds it until
    "handle",  # the machine takes it; no more if the node crashes before that.
    "lost",
    # Other events that a machine handled.
    "timer",
    "synced",
    "closed",
    "drained",
    # The disk: writes are numbered for each node, and `number` is the write's, or that up to which a sync goes.
    "append",
    "put",
    "truncate",
    "sync",
    "durable",
    # The node itself.
    "start",
    "crash",
    "pause",
    "resume",
    # What the journal records as well, by the names of its records.
    "invoke",
    "complete",
    "event",
    "fault",
    "probe",
    "state",
    "mark",
]
MESSAGES: Final = ("send", "deliver", "handle", "lost")
HANDLED: Final = ("handle", "timer", "synced", "closed", "drained")  # They add up to what `Mark.handled` counts.
SECOND: Final = 1_000_000_000
_DIGITS_MAX: Final = 9  # Beyond the point: nanoseconds.
_RANGE = re.compile(r"(\d{1,6}(?:\.\d+)?)\.\.(\d{1,6}(?:\.\d+)?)")


class TraceRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened at `node`, `ns` after the start of the run. What has no node is the run's own.

    `type` is the message's, the timer's name, the log or key that is written, or the kind of what the journal records;
    `fields` is the content. Of a fault `number` is the step, and `note` the phase.
    """

    ns: int
    what: What
    node: str | None = None
    peer: str | None = None
    number: int | None = None
    type: str | None = None
    fields: Json = None
    note: str | None = None


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The moments to trace, in nanoseconds since the start of the run, both ends included."""

    from_ns: int
    to_ns: int

    def __str__(self) -> str:
        """As it is written on the command line."""
        return f"{_seconds(self.from_ns)}..{_seconds(self.to_ns)}"


def window(text: str) -> Window:
    """The window that FROM..TO means, in seconds. Raises ScenarioError if it means none."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or any(len(part.partition(".")[2]) > _DIGITS_MAX for part in match.groups()):
        raise ScenarioError(f"--trace {text}: must be FROM..TO in seconds of the run's time, such as 12.5..13")
    from_ns, to_ns = (int(Decimal(part) * SECOND) for part in match.groups())
    if from_ns >= to_ns:
        raise ScenarioError(f"--trace {text}: must end after it begins")
    return Window(from_ns=from_ns, to_ns=to_ns)


def _seconds(ns: int) -> str:
    whole, rest = divmod(ns, SECOND)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
