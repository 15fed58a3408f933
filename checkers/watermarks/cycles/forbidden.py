"""The classes of cycles through watermarks that break the promises of a source and a stream.

A cluster forbids classes by name. `forbidden` derives classes from a stream's contract, and from the model that its
transactions are promised to keep: perhaps fewer than they imply, never more. All other classes are reported as
observations.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from checkers.graph.classes import G0, G1C, NONADJACENT, SINGLE
from checkers.watermarks.cycles.steps import INTERMEDIATE, ORDER, SPLIT, TORN
from harness.core.promises import StreamContract

_WEAKEST: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"G1c": (G0, G1C), "G-single": (SINGLE,), "G-nonadjacent": (NONADJACENT,)}
)


def forbidden(contract: StreamContract, anomalies: Iterable[str]) -> frozenset[str]:
    """The classes that this contract and these prohibited anomalies of transactions forbid; none without a cut.

    1. A unit that the contract keeps whole is not torn by a watermark either, unless it is whole per partition only.
    2. Positions with one order for all, and an equal state at each, order watermarks and forbid split ones.
    3. A stream in one order for all, or by epochs, follows ww and wr if its source does: G0 and G1c. If the source has
       snapshots, G-single and G-nonadjacent. G2-item and real time need more than a contract says.
    """
    if contract.cut == "unknown":
        return frozenset()
    found = set[str]()
    is_whole = contract.atomic_unit in ("transaction", "epoch") and contract.unit_scope == "global"
    if contract.is_position_global:
        found.add(ORDER)
    if is_whole:
        found |= {INTERMEDIATE, TORN} | ({SPLIT} if contract.is_position_global else set())
    if is_whole and (contract.order_key == "global" or contract.position == "epoch"):
        broken = set(anomalies)
        for anomaly, classes in _WEAKEST.items():
            found |= set(classes) if anomaly in broken else set()
    return frozenset(f"{name}-watermark" for name in found)
