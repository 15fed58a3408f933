"""Changes of regions that an operator or a balancer requests: split, merge, transfer of the leader."""

from typing import Final

from clusters.parts.client import Refused, Unclear
from clusters.ticdc.regions.messages import MergeLeft, Reshaped, SplitAt, TransferLeader
from clusters.ticdc.shape import MS, STORES, key_of
from clusters.ticdc.site import Site
from clusters.ticdc.transactions.messages import Begun, Reshape
from clusters.ticdc.transactions.tasks import Procedure, Tasks, call, timestamp

MOST: Final = 8  # Regions: more are not split.
PATIENCE_NS: Final = 300 * MS


def reshape(site: Site, tasks: Tasks, request: Reshape) -> Procedure[Begun | Refused | Unclear]:
    """The outcome of one change. The number of a new region is a timestamp: no other region will have it."""
    key = key_of(request.key)
    region = tasks.table.of(key)
    match request.kind:
        case "split":
            if len(tasks.table.regions) >= MOST:
                return Refused("enough regions")
            child = yield from timestamp()
            if not child:
                return Refused("no timestamp")
            answer = yield from call(region, SplitAt(key, child), PATIENCE_NS)
        case "merge":
            answer = yield from call(region, MergeLeft(), PATIENCE_NS)
        case "transfer":
            others = tuple(store for store in STORES if store != tasks.leader(region))
            to = others[site.context.draw("transfer").below(len(others))]
            answer = yield from call(region, TransferLeader(to), PATIENCE_NS)
    match answer:
        case Reshaped("done"):
            return Begun()
        case Reshaped("refused"):
            return Refused("that region cannot be changed so")
        case None:
            return Unclear("no answer")
        case _:
            return Refused("the regions have changed")
