"""TiKV and TiCDC: a key-value store with resolved timestamps that large transactions do not hold back.

See README.md.
"""

from clusters.ticdc.cluster import Ticdc as Cluster

__all__ = ["Cluster"]
