"""The cluster that teaches. See README.md."""

from clusters.tutorial.cluster import Tutorial as Cluster

__all__ = ["Cluster"]
