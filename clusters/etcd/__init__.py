"""etcd: three members, and the watch of its revisions. See README.md."""

from clusters.etcd.cluster import cluster as Cluster  # noqa: N812  An entry point names it as a class.

__all__ = ["Cluster"]
