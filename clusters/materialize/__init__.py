"""Materialize's timestamp oracle: strictly serializable tables, sources and views. See README.md."""

from clusters.materialize.cluster import Materialize as Cluster

__all__ = ["Cluster"]
