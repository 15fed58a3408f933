"""Fixed addresses, under which servers find each other by name even while one is down.

The engine's own names do not do: a container that is down has none, and whoever asks for it waits for ten seconds or
more, as the network leads to no other server of names. Redis Sentinel does nothing else meanwhile.
"""

import ipaddress
from collections.abc import Callable, Iterable
from typing import Final

from docker.errors import APIError
from docker.models.networks import Network
from docker.types import IPAMConfig, IPAMPool

from harness.core.machine import NodeId

_ATTEMPTS: Final = 10
OVERLAPS: Final = "overlaps"


def fixed(create: Callable[[IPAMConfig | None], Network]) -> Network:
    """A network whose addresses may be chosen: the engine allows that only if its range was chosen as well.

    So a first network shows a free range, and is made again with that. Raises APIError.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        network = create(None)
        chosen = IPAMConfig(pool_configs=[IPAMPool(subnet=_range_of(network))])
        network.remove()
        try:
            return create(chosen)
        except APIError as error:
            # Another run has taken the range in between.
            if OVERLAPS not in str(error) or attempt == _ATTEMPTS:
                raise
    raise AssertionError


def addresses(network: Network, nodes: Iterable[NodeId]) -> dict[str, str]:
    """The address of each node: the last ones of the range, as the engine gives away the first ones."""
    every = ipaddress.ip_network(_range_of(network))
    return {node: str(every[-2 - place]) for place, node in enumerate(nodes)}


def _range_of(network: Network) -> str:
    network.reload()
    return str(network.attrs["IPAM"]["Config"][0]["Subnet"])
