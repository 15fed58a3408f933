"""Redis 7 and Valkey: a master with two replicas, alone or watched by three Sentinels. See README.md."""

from clusters.redis.cluster import sentinel_cluster as SentinelCluster  # noqa: N812  Entry points name classes.
from clusters.redis.cluster import standing_cluster as Cluster  # noqa: N812

__all__ = ["Cluster", "SentinelCluster"]
