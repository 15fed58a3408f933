"""Epochs of MySQL Cluster, alone or with binlogs and a replica, or at two sites. See README.md."""

from clusters.ndb.cluster import Ndb as Cluster
from clusters.ndb.conflicts.cluster import NdbActive as ActiveCluster
from clusters.ndb.replica.cluster import NdbReplica as ReplicaCluster

__all__ = ["ActiveCluster", "Cluster", "ReplicaCluster"]
