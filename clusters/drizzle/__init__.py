"""Drizzle's replication by transaction messages, which are cut while a transaction is still open. See README.md."""

from clusters.drizzle.cluster import Drizzle as Cluster

__all__ = ["Cluster"]
