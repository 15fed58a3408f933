"""Series of a report, and the lag of a watermark by its definition."""

import numpy as np

from harness.report.series import Series

NONE = np.empty(0, np.int64)


def series(commits: list[tuple[int, int]], *, outcomes: list[int] | None = None) -> Series:
    """Commits as (nanoseconds, position)."""
    commits = sorted(commits, key=lambda commit: commit[1])
    ended = np.array([ns for ns, _ in commits], np.int64)
    return Series(
        index=np.arange(len(commits)),
        process=np.zeros(len(commits), np.int64),
        outcome=np.array(outcomes if outcomes is not None else [0] * len(commits), np.int8),
        invoke_ns=np.maximum(ended - 1_000, 0),
        complete_ns=ended,
        commit_ns=ended,
        commit_position=np.array([position for _, position in commits], np.int64),
        event_seq=NONE,
        event_ns=NONE,
        event_subscriber=NONE,
        event_session=NONE,
        event_position=NONE,
        is_watermark=np.empty(0, np.bool_),
        is_row=np.empty(0, np.bool_),
        subscribers=(),
        announced={},
        windows=(),
        phases={},
        views=(),
        end_ns=int(ended.max()) if len(ended) else 0,
    )


def lag_at(ns: int, marks: list[tuple[int, int]], commits: list[tuple[int, int]], *, is_closed: bool) -> int:
    """The definition, spelled out: the age of the oldest acknowledged write above all that was announced."""
    reached = max((position for at, position in marks if at <= ns), default=None)
    above = [
        at
        for at, position in commits
        if at <= ns and (reached is None or position > reached or (position == reached and not is_closed))
    ]
    return ns - min(above) if above else 0
