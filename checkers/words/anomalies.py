"""What is declared of an anomaly, once: where it is found, or here if several checks find it.

Titles, groups, models, pages and docs derive from the record of an anomaly; `checkers.catalogue` collects all of them.
Its name is the key under which a check declares it. Reports, JSON and code spell names the same.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

import msgspec

NON_LINEARIZABLE: Final = "non-linearizable"


class Cause(Enum):
    """How close an anomaly is to the root of what went wrong: earlier causes explain later ones."""

    OWNER = "two act as the only one"
    EPOCH = "an epoch has two owners, or the wrong content"
    LOSS = "data is lost, or has come back"
    PART = "one part of a transaction is lost"
    STATE = "the state has an element that it must not have, or copies of it differ"
    READ = "a read misses an element that it must show"
    SESSION = "a stream's session has the wrong events, or lacks some from its start"
    EVENT = "an event differs from its write"
    WATERMARK = "a watermark is too high, or too low"
    LATE = "an event is missing, or comes too late"
    TORN = "a unit is torn"
    REPEATED = "an event comes again"
    ORDER = "a stream is out of order, or two views of it differ"
    SUM = "the state that events build is wrong"
    OTHER = "it is not known what explains it"
    TRANSACTION = "transactions see effects that they must not see"
    CUT = "the content of a watermark is not consistent"
    WAIT = "progress is too slow"
    PAST = "timestamps are wrong, or reads at them"
    REFUSED = "something is refused, or kept, without a reason"


class Anomaly(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of an anomaly. `title` is its name for people, if that is not the name itself.

    `implies` are the anomalies that are present whenever it is, `forbidden_by` the models of transactions that prohibit
    it themselves, with no weaker model that does: names, with spaces between them.
    """

    meaning: str
    title: str = ""
    cause: Cause = Cause.OTHER
    implies: str = ""
    forbidden_by: str = ""


Declared = Mapping[str, Anomaly | str]  # Anomalies by name; of one that needs no more than a meaning, the meaning.


def records(declared: Declared) -> dict[str, Anomaly]:
    """The records of declared anomalies, by name."""
    return {name: Anomaly(meaning=each) if isinstance(each, str) else each for name, each in declared.items()}


def title_of(name: str, record: Anomaly | None) -> str:
    """The title of an anomaly: declared, or its name in words."""
    return (record and record.title) or name[:1].upper() + name[1:].replace("-", " ")


# Names that several checks use, besides those of transactions (`transactional.py`).
SHARED: Final[Mapping[str, Anomaly]] = MappingProxyType(
    {
        "lost-acknowledged": Anomaly(
            meaning="An acknowledged write is gone.", title="Lost acknowledged write", cause=Cause.LOSS
        ),
        "resurrected": Anomaly(meaning="An undone write has come back.", cause=Cause.LOSS),
        "phantom-write": Anomaly(
            meaning="The state has an element of an operation that certainly failed, or of nobody.", cause=Cause.STATE
        ),
        "lost-element": Anomaly(meaning="An acknowledged element of a set or a queue is gone."),
        "order-inversion": Anomaly(
            meaning="An event arrived after one that it precedes in the stream's order.", cause=Cause.ORDER
        ),
        "unexpected-element": Anomaly(meaning="A set or a queue shows what nobody tried to put in."),
    }
)
