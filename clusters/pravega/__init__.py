"""Pravega's rolling transactions (PDP 24): streams of segments that scale under open transactions. See README.md."""

from clusters.pravega.cluster import Pravega as Cluster

__all__ = ["Cluster"]
