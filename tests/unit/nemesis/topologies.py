"""Clusters to aim at: one like the tutorial, one with datagrams and a larger quorum, and one without anything extra."""

from nemesis.topology import Topology

SMALL = Topology(
    nodes=(("c1", "coordinator"), ("n1", "data"), ("n2", "data"), ("s1", "subscriber"), ("s2", "subscriber")),
    links={
        ("client", "data"): "fifo",
        ("data", "client"): "fifo",
        ("coordinator", "data"): "fifo",
        ("data", "coordinator"): "fifo",
        ("data", "data"): "fifo",
        ("data", "subscriber"): "fifo",
        ("subscriber", "data"): "fifo",
    },
    points=("before-replicate", "before-answer"),
)
QUORUM = Topology(
    nodes=tuple((f"n{number}", "data") for number in range(1, 6)),
    links={("client", "data"): "fifo", ("data", "client"): "fifo", ("data", "data"): "datagram"},
)
LONE = Topology(nodes=(("n1", "data"),), links={("client", "data"): "fifo", ("data", "client"): "fifo"})
