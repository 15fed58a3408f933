"""Limits of containers: only the capabilities named here, no new privileges, and no connection to the outside.

A comment gives what fails without each capability. A third-party server's service names those needed beyond `SERVER`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import docker
from docker.models.networks import Network
from docker.types import IPAMConfig

from harness.runtimes.containers.engine.addresses import fixed
from harness.runtimes.containers.images.catalogue import IMAGES

STALL: Final = "stall"  # The only fault made with packet rules.
STALLED_NODE: Final = {"NET_ADMIN": "iptables, in the node's own network namespace, is how packets vanish"}
# A published image usually starts as root: it gives the data folder to the server's user, and becomes that user.
SERVER: Final = {
    "CHOWN": "chown of the data folder, which the image or a fresh volume gave to root",
    "DAC_OVERRIDE": "root looks into folders that belong to the server's user",
    "FOWNER": "chmod of files that belong to the server's user",
    "SETGID": "gosu, su-exec and setpriv take the group of the server's user",
    "SETUID": "and its user",
}
# Replies find no route to the outside: packets leave under an address of the container, unknown elsewhere.
UNTRANSLATED: Final = {"com.docker.network.bridge.enable_ip_masquerade": "false"}


def confined(capabilities: Iterable[str] = ()) -> dict[str, Any]:
    """The engine's options for a container with exactly these capabilities."""
    return {
        "cap_drop": ["ALL"],
        "cap_add": sorted({name.removeprefix("CAP_") for name in capabilities}),
        "security_opt": ["no-new-privileges"],
    }


def capabilities_of(image: str, declared: Iterable[str]) -> tuple[str, ...]:
    """The capabilities of a server: our own images start as their final user, and need none; `declared` are added."""
    return (*(() if image in IMAGES else SERVER), *declared)


def private_network(
    client: docker.DockerClient, name: str, labels: Mapping[str, str], *, is_internal: bool, is_fixed: bool = False
) -> Network:
    """A new network. `is_fixed`: its containers may have chosen addresses.

    An internal one leads nowhere; but the engine publishes no ports of containers that are in no other.
    """

    def create(ipam: IPAMConfig | None) -> Network:
        options = dict(UNTRANSLATED)
        return client.networks.create(
            name, driver="bridge", internal=is_internal, options=options, labels=dict(labels), ipam=ipam
        )

    return fixed(create) if is_fixed else create(None)
