"""What the stream rules say about a log in the small language."""

from collections.abc import Sequence

import msgspec

from checkers.history.streams import StreamLog, merged, placed, placement
from checkers.streams.rules.logs.split_view import splits
from checkers.streams.task import BOUNDARY, LATE, MISSING, REGRESS, RULES, SPLIT, TORN, Outcome, judged
from checkers.streams.view import Ruling, StreamView, stream_view
from harness.core.promises import StreamContract
from tests.stream_language import deliveries_of, events, source_of, writes

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
WATERMARK_RULES = (LATE, BOUNDARY, REGRESS, MISSING, TORN)
TRANSACTIONS = "ok@1 x=1; ok@2 x=2 y=3; ok@3 y=4"
WHOLE = "open@0 x=1@1 x=2@2.0 y=3@2.1 y=4@3"


def contract(**changes: object) -> StreamContract:
    """The usual contract with changes: watermarks are inclusive, bind a session, and cut by delivery."""
    return msgspec.structs.replace(CONTRACT, **changes)


def view(log: str, source: str = "", **changes: object) -> StreamView:
    """The view of a log beside its source, which deliveries help to place."""
    deliveries, written = deliveries_of(events(log)), source_of(writes(source))
    return stream_view(deliveries, placed(written, merged([placement(deliveries, written)])), contract(**changes))


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
    assert result.views is not None
    anomalies = {example.anomaly for example in result.examples}
    anomalies |= {SPLIT} if splits([result.views])[0] else set()
    return [name for name in RULES if name in anomalies]


def words(log: str, rows: Sequence[int]) -> list[str]:
    """The events at those rows, as they are written in the log."""
    said = [word for word in log.split() if word[0] not in "su" or not word[1:2].isdigit()]
    return [said[row] for row in rows]


def shown(log: str, ruling: Ruling) -> list[tuple[str, str]]:
    """Each violation as (watermark, event)."""
    return list(zip(words(log, ruling.watermark.tolist()), words(log, ruling.row.tolist()), strict=True))
