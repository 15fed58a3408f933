"""Logs that split and merge: the keys of each (C12), the order of keys (C10), and the order of units (C11).

Only a history with declared logs can break the first two. Source: shards of Kinesis and of DynamoDB streams, segments
of Pravega, split partitions of Pulsar, and regions of TiKV are such logs.
"""

from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.troubles import judgement
from checkers.lineage import order, space, units
from checkers.lineage.logs import lineage
from checkers.words.checks import LINEAGE
from harness.core.verdict import Judgement

ANOMALIES: Final = dict(space.ANOMALIES) | order.ANOMALIES | units.ANOMALIES


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the logs of that history. Raises HistoryError for a declaration that cannot be read."""
    contract = context.contract
    if contract is None:
        raise AssertionError("without a contract there is no stream to judge")
    found = lineage(history)
    of_space, broken = space.judge(found)
    followed, inverted = order.judge(found, is_group=contract.consumers == "group")
    of_units, apart = units.judge(found, contract.unit_layout)
    return judgement(
        LINEAGE,
        ANOMALIES,
        [*broken, *inverted, *apart],
        of_space | {order.INVERSION: followed} | of_units,
        facts={"logs": len(found.logs)} if found.logs else {},
    )


CHECKS: Final = (Check(name=LINEAGE, anomalies=ANOMALIES, judge=check, needs_contract=True),)
