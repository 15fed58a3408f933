"""NATS JetStream: three servers with one replicated stream, and its pull consumers. See README.md."""

from clusters.nats.cluster import cluster as Cluster  # noqa: N812  An entry point names it as a class.

__all__ = ["Cluster"]
