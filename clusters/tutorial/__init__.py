"""A small cluster that serves as a tutorial. See README.md."""

from clusters.tutorial.cluster import Tutorial as Cluster

__all__ = ["Cluster"]
