"""A node's configuration at the start of its process: JSON in the environment variable SEAMARK_NODE."""

import msgspec

from harness.core.machine import NodeId, Settings

VARIABLE = "SEAMARK_NODE"
DATA_PORT = 7000
CONTROL_PORT = 7001


class NodeConfig(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The configuration of one node of one run."""

    node: NodeId
    cluster: str  # "module:attribute"; called without arguments it is a `harness.core.seams.MachineCluster`.
    settings: Settings
    seed: int
    token: str  # The token of the run, which opens the control channel.
    epoch_ns: int  # CLOCK_MONOTONIC when the run began: the zero of `now_ns`.
    epoch_realtime_ns: int = 0  # CLOCK_REALTIME at that moment: the zero of `local_clock_ns`.
    peers: dict[NodeId, tuple[str, int]]  # The addresses of all other nodes. A peer not listed is a client.
    listen_host: str = "0.0.0.0"  # noqa: S104  The network of a container holds its run and nothing else.
    listen_port: int = DATA_PORT
    control_port: int = CONTROL_PORT
    folder: str  # The folder of durable state.


def encode_config(config: NodeConfig) -> str:
    """The text for the environment variable."""
    return msgspec.json.encode(config).decode()


def decode_config(text: str) -> NodeConfig:
    """The configuration in that text. Raises msgspec.DecodeError that names the field if it is not one."""
    return msgspec.json.decode(text, type=NodeConfig)
