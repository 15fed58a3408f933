"""Names of anomalies for people: "Read skew (G-single)", and "Missing event" where the name is plain already."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from checkers.words.anomalies import Anomaly, title_of

NONE: Final[Mapping[str, Anomaly]] = MappingProxyType({})


def known() -> Mapping[str, Anomaly]:
    """The records of all anomalies that checks of ours may report, in the order of the catalogue."""
    from checkers.catalogue import RECORDS  # noqa: PLC0415  It imports every check; few commands name an anomaly.

    return RECORDS


def record_of(anomaly: str, own: Mapping[str, Anomaly] = NONE) -> Anomaly | None:
    """The record of an anomaly; None if there is none. `own` are those that a system's own checks declare."""
    return known().get(anomaly) or own.get(anomaly)


def title(anomaly: str, own: Mapping[str, Anomaly] = NONE) -> str:
    """The name for people, followed by the literature's name in brackets where the two differ."""
    words = title_of(anomaly, record_of(anomaly, own))
    return words if words.replace(" ", "-").casefold() == anomaly.casefold() else f"{words} ({anomaly})"


def meaning(anomaly: str, own: Mapping[str, Anomaly] = NONE) -> str:
    """The meaning of an anomaly in a line; empty if no record is known."""
    record = record_of(anomaly, own)
    return record.meaning if record else ""
