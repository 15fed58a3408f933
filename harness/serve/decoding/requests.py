"""The requests to a process that decodes records, and its answers."""

from typing import Final, Literal

import msgspec

from harness.core.verdict import Finding

Format = Literal["jsonl", "edn"]
WATCHERS_MAX: Final = 32  # The most browsers that follow runs: each has a state in the process.
OUT_OF_MEMORY: Final = 3  # The exit code of a process that reached its memory limit.


class Span(msgspec.Struct, frozen=True, tag=True):
    """A span of the run's own time in nanoseconds, both ends included."""

    from_ns: int
    to_ns: int


class Part(msgspec.Struct, frozen=True, tag=True):
    """The records of a finding, by their places: indices of operations, and places in the journal."""

    ops: tuple[int, ...]
    events: tuple[int, ...]

    @classmethod
    def of(cls, finding: Finding) -> "Part":
        """The records of that finding."""
        return cls(finding.ops, finding.events)


class Cut(msgspec.Struct, frozen=True, tag=True):
    """A request to write a slice of a run's history into the file at `path`; the whole history if `wanted` is None."""

    run: str
    path: str
    form: Format
    wanted: Span | Part | None


class Look(msgspec.Struct, frozen=True, tag=True):
    """A request to read the next records of a run that is watched. Each watcher has another number."""

    run: str
    watcher: int


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a run, as plain texts without markup."""

    elapsed: str
    phase: str
    ok: str
    fail: str
    unknown: str
    per_s: str
    faults: str
    slowest: str
    seconds: float  # For the curve: the run's own time, and
    total: int  # the operations completed by then.


class Done(msgspec.Struct, frozen=True, tag=True):
    """The answer to a Cut: the file is there."""


class Seen(msgspec.Struct, frozen=True, tag=True):
    """The answer to a Look. The journal may have more records if `is_more`."""

    shown: Shown
    is_more: bool


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The answer to a request that failed. `why` is one line."""

    why: str


Request = Cut | Look
Answer = Done | Seen | Refused
