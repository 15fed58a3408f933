"""Epochs of MySQL Cluster. See README.md."""

from clusters.ndb.cluster import Ndb as Cluster

__all__ = ["Cluster"]
