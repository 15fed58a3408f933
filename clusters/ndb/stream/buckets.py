"""The publisher of a bucket: a function of bucket and epoch, never of the time of the query.

A row may reach a node long after its epoch was handed over, or before. Every query gets the same answer: only the
future changes, from an epoch on that has not begun.
"""

from dataclasses import dataclass
from typing import Self

from clusters.ndb.shape import GROUPS, buckets_of, preferred_owner
from harness.core.machine import NodeId

Steps = tuple[tuple[int, NodeId], ...]  # The owners of a bucket, each with the epoch from which it owns it, ascending.


@dataclass(frozen=True, slots=True)
class Ownership:
    """The ownership of one node group's buckets. `steps` has an entry for each bucket, in order."""

    first_bucket: int
    steps: tuple[Steps, ...]

    @classmethod
    def from_start(cls, group: int, members: tuple[NodeId, ...]) -> Self:
        """The initial ownership for these members: each bucket has its preferred owner, if that node is present."""
        present = tuple(node for node in GROUPS[group] if node in members)
        owners = [
            owner if (owner := preferred_owner(bucket)) in present else present[0] for bucket in buckets_of(group)
        ]
        return cls(buckets_of(group)[0], tuple(((0, owner),) for owner in owners))

    def owner(self, bucket: int, epoch: int) -> NodeId:
        """The node that publishes that bucket's rows of that epoch."""
        steps = self.steps[bucket - self.first_bucket]
        since, owner = steps[-1]
        if epoch >= since:
            return owner
        return next(node for start, node in reversed(steps) if epoch >= start)

    def owned(self, node: NodeId, epoch: int) -> tuple[int, ...]:
        """The buckets that the node publishes in that epoch, ascending."""
        last = self.first_bucket + len(self.steps)
        return tuple(bucket for bucket in range(self.first_bucket, last) if self.owner(bucket, epoch) == node)

    def taken_over(self, node: NodeId, switch: int) -> "Ownership":
        """The ownership after `node` takes over everything from epoch `switch` on. Later agreements are void."""
        return Ownership(self.first_bucket, tuple(_given(_until(steps, switch), node, switch) for steps in self.steps))

    def handed_over(self, node: NodeId, switch: int) -> "Ownership":
        """The ownership after the buckets that prefer that node become its own from epoch `switch` on.

        If repeated with another epoch, as a new master may do, the later call counts: nothing has been published under
        the earlier one.
        """
        steps = []
        for bucket, before in enumerate(self.steps, self.first_bucket):
            if preferred_owner(bucket) == node:
                kept = before[:-1] if len(before) > 1 and before[-1][1] == node else before
                steps.append(_given(kept, node, switch))
            else:
                steps.append(before)
        return Ownership(self.first_bucket, tuple(steps))


def _until(steps: Steps, switch: int) -> Steps:
    return tuple(step for step in steps if step[0] < switch)


def _given(steps: Steps, node: NodeId, switch: int) -> Steps:
    return steps if steps and steps[-1][1] == node else (*steps, (switch, node))
