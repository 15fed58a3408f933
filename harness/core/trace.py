"""A trace: all events in a window of a run, down to single messages. One object per line in trace.jsonl."""

import re
from decimal import Decimal
from typing import Final, Literal

import msgspec

from harness.core.errors import ScenarioError
from harness.core.record import Json

What = Literal[
    # Messages: `number` is the same in all records of one message.
    "send",
    "deliver",  # It reached the other end, and waits there in an inbox until
    "handle",  # the machine takes it; never, if the node crashes before.
    "lost",
    # Events other than messages that a machine handled.
    "timer",
    "synced",
    "closed",
    "drained",
    # The disk: writes are numbered for each node; `number` is the write's, or that of the last write synced.
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
    # Events that the journal records too, under its record names.
    "invoke",
    "complete",
    "event",
    "fault",
    "probe",
    "state",
    "mark",
]
MESSAGES: Final = ("send", "deliver", "handle", "lost")
HANDLED: Final = ("handle", "timer", "synced", "closed", "drained")  # Counted in `Mark.handled`.
SECOND: Final = 1_000_000_000
_DIGITS_MAX: Final = 9  # The most digits after the decimal point: nanoseconds.
_RANGE = re.compile(r"(\d{1,6}(?:\.\d+)?)\.\.(\d{1,6}(?:\.\d+)?)")


class TraceRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event at `node`, `ns` after the start of the run. An event without a node is the run's own.

    `type` is the type of the message, the name of the timer, the log or key written, or the kind of the journal's
    record; `fields` is the content. For a fault, `number` is the step, and `note` the phase.
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
    """The span of time to trace, in nanoseconds since the start of the run, both ends included."""

    from_ns: int
    to_ns: int

    def __str__(self) -> str:
        """The window as written on the command line."""
        return f"{_seconds(self.from_ns)}..{_seconds(self.to_ns)}"


def window(text: str) -> Window:
    """The window of FROM..TO, in seconds. Raises ScenarioError if the text is not a window."""
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
