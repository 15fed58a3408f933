"""PostgreSQL 15: a primary with a physical standby, and its logical change stream. See README.md."""

from clusters.postgres.cluster import failover_cluster, standing_cluster

Cluster, FailoverCluster = standing_cluster, failover_cluster

__all__ = ["Cluster", "FailoverCluster"]
