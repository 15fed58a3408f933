"""Names of anomalies for people: "Read skew (G-single)", and "Missing event" where the name is plain already."""

from types import MappingProxyType
from typing import Final

from checkers.words.anomalies import CYCLES, RECORDS

_NAMES: Final = MappingProxyType(
    {
        "G0": "Dirty write",
        "G1c": "Circular information flow",
        "G-single": "Read skew",
        "G-nonadjacent": "Long read skew",
        "G2-item": "Write skew",
        "non-monotonic-view": "Non-monotonic view",
        "stale-acknowledged": "Stale read",
        "lost-acknowledged": "Lost acknowledged write",
        "non-linearizable": "Not linearizable",
        "epoch-shape": "Broken sequence of epochs",
        "double-epoch": "Transaction in two epochs",
        "double-status": "Transaction both committed and aborted",
        "late-event-boundary": "Late event at a watermark",
        "lag": "Stream too far behind",
        "stall": "Stall",
        "cut-not-closed": "Epoch without its cause",
    }
)
_ORDERS: Final = MappingProxyType({"-process": " within a session", "-realtime": " in real time"})
_WATERMARK: Final = "-watermark"


def title(anomaly: str) -> str:
    """The name for people, followed by the literature's name in brackets where the two differ."""
    order = next((order for order in _ORDERS if anomaly.endswith(order)), "")
    name = anomaly.removesuffix(order)
    base = name.removesuffix(_WATERMARK) if name.removesuffix(_WATERMARK) in CYCLES else name
    declared = RECORDS[base].title if base in RECORDS else _NAMES.get(base)
    words = declared or base[:1].upper() + base[1:].replace("-", " ")
    words += " through watermarks" * (base != name) + _ORDERS.get(order, "")
    return words if words.replace(" ", "-").casefold() == anomaly.casefold() else f"{words} ({anomaly})"
