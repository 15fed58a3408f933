"""What the stream rules say about a log in the small language."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import msgspec

from checkers.columns import blocks
from checkers.history.around import Around
from checkers.history.streams import StreamLog, merged, placed, placement
from checkers.streams.catalogue import RULES
from checkers.streams.rules.logs.split_view import SPLIT_VIEW, Views, splits
from checkers.streams.task import Outcome, judged
from checkers.streams.view import Ruling, StreamView, stream_view
from harness.core.promises import StreamContract
from tests.worlds.streams.language import deliveries_of, events, source_of, writes

CONTRACT = StreamContract(closed="<=", cut="delivery", position="offset", wm_scope="session")
EPOCHS: dict[
    str, object
] = {  # A stream of epochs, each of which holds whole transactions: one row for each key of one.
    "position": "epoch",
    "cut": "position",
    "order_key": "key",
    "delivery": "exactly-once",
    "unit_rows": "final",
    "identity": "position+key+value",
    "is_position_unique": False,
    "has_gap_marker": True,
}
LOG = StreamLog("", (), tuple(f"s{n}" for n in range(9)), ())
WATERMARK_RULES = ("late-event", "late-event-boundary", "watermark-regress", "missing-event", "torn-unit")
TRANSACTIONS = "ok@1 x=1; ok@2 x=2 y=3; ok@3 y=4"
WHOLE = "open@0 x=1@1 x=2@2.0 y=3@2.1 y=4@3"


def contract(**changes: object) -> StreamContract:
    """The usual contract with changes: watermarks are inclusive, bind a session, and cut by delivery."""
    return msgspec.structs.replace(CONTRACT, **changes)


def view(log: str, source: str = "", **changes: object) -> StreamView:
    """The view of a log beside its source, which deliveries help to place."""
    deliveries, written = deliveries_of(events(log)), source_of(writes(source))
    return stream_view(deliveries, placed(written, merged([placement(deliveries, written)])), contract(**changes))


def beside(of: StreamView, around: Around) -> StreamView:
    """The same view, of a log in those surroundings."""
    return replace(of, log=replace(of.log, around=around))


@contextmanager
def in_blocks_of(rows: int) -> Iterator[None]:
    """Inside, long logs are judged in blocks of so many rows."""
    with mock.patch.object(blocks, "BLOCK_ROWS", rows):
        yield


def outcome(log: str, source: str = "", **changes: object) -> Outcome:
    """What one task would say of it, subscribers judged together."""
    deliveries, written = deliveries_of(events(log)), source_of(writes(source))
    names = tuple(f"s{n}" for n in range(int(deliveries.subscriber.max(initial=0)) + 1))
    written = placed(written, merged([placement(deliveries, written)]))
    return judged(StreamLog("", names, names, ()), deliveries, written, contract(**changes))


def found(log: str, source: str = "", **changes: object) -> list[str]:
    """The anomalies of a log by the rules about watermarks, in their order."""
    return [name for name in accused(log, source, **changes) if name in WATERMARK_RULES]


def accused(log: str, source: str = "", **changes: object) -> list[str]:
    """All anomalies of a log, in the order of the rules."""
    result = outcome(log, source, **changes)
    assert result.defect is None, result.defect
    anomalies = anomalies_of(result)
    return [name for name in RULES if name in anomalies]


def anomalies_of(result: Outcome) -> set[str]:
    """The anomalies of an only log."""
    found = {example.anomaly for example in result.examples}
    return found | ({SPLIT_VIEW.name} if splits(views(result))[0] else set())


def views(result: Outcome) -> list[Views]:
    """What the sessions of a log saw; none if it could not be judged."""
    return [each for each in result.summaries.values() if isinstance(each, Views)]


def words(log: str, rows: Sequence[int]) -> list[str]:
    """The events at those rows, as they are written in the log."""
    said = [word for word in log.split() if word[0] not in "su" or not word[1:2].isdigit()]
    return [said[row] for row in rows]


def shown(log: str, ruling: Ruling) -> list[tuple[str, str]]:
    """Each violation as (watermark, event)."""
    return list(zip(words(log, ruling.watermark.tolist()), words(log, ruling.row.tolist()), strict=True))
