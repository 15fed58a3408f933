"""Who publishes a bucket: a function of the bucket and the epoch, never of the moment at which somebody asks.

A row may reach a node long after its epoch was handed over, or before. Whoever asks gets the same answer: what changes
is only the future, from an epoch on that has not begun.
"""

from dataclasses import dataclass
from typing import Self

from clusters.ndb.shape import GROUPS, buckets_of, preferred_owner
from harness.core.machine import NodeId

Steps = tuple[tuple[int, NodeId], ...]  # From which epoch on a bucket is whose, ascending.


@dataclass(frozen=True, slots=True)
class Ownership:
    """The buckets of one node group. `steps` has an entry for each, in their order."""

    first_bucket: int
    steps: tuple[Steps, ...]

    @classmethod
    def from_start(cls, group: int, members: tuple[NodeId, ...]) -> Self:
        """What is so when these nodes of the group begin: each bucket has its preferred owner, if that one is there."""
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
        """Everything is that node's from epoch `switch` on, whatever had been agreed for later."""
        return Ownership(self.first_bucket, tuple(_given(_until(steps, switch), node, switch) for steps in self.steps))

    def handed_over(self, node: NodeId, switch: int) -> "Ownership":
        """The buckets that prefer that node are its own from epoch `switch` on.

        Said again with another epoch, as a new master may, the later word counts: nothing has been published under
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
