"""Runs a node: `python -m harness.runtimes.host`, with its configuration in the environment variable SEAMARK_NODE."""

import asyncio
import importlib
import os
import sys
from collections.abc import Callable

import msgspec

from harness.core.seams import MachineCluster
from harness.runtimes.host.config import VARIABLE, NodeConfig, decode_config
from harness.runtimes.host.frames import Codec, codec_of
from harness.runtimes.host.host import Host
from harness.runtimes.host.supervisor import supervise


def main() -> None:
    """Load the cluster, and run one life of the node after the other."""
    try:
        config = decode_config(os.environ.get(VARIABLE, ""))
    except msgspec.DecodeError as error:
        sys.exit(f"{VARIABLE} is no configuration of a node: {error}")
    module, _, name = config.cluster.partition(":")
    cluster: MachineCluster = getattr(importlib.import_module(module), name)()
    codec = codec_of(config.cluster)

    def live(leave: Callable[[int, int | None], None]) -> None:
        asyncio.run(_live(config, cluster, codec, leave))

    supervise(live)


async def _live(
    config: NodeConfig, cluster: MachineCluster, codec: Codec, leave: Callable[[int, int | None], None]
) -> None:
    await Host(config, cluster, codec, leave).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    main()
