"""Epochs of MySQL Cluster, alone or with binlogs and a replica. See README.md."""

from clusters.ndb.cluster import Ndb as Cluster
from clusters.ndb.replica.cluster import NdbReplica as ReplicaCluster

__all__ = ["Cluster", "ReplicaCluster"]
