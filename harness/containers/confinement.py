"""What a container may do: no capability but those named here, no new privileges, and no connection to the outside.

Each capability stands beside what fails without it. What a server of others needs beyond `SERVER`, its service names.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import docker
from docker.models.networks import Network

from harness.containers.catalogue import IMAGES

STALL: Final = "stall"  # The one fault that is packet rules.
STALLED_NODE: Final = {"NET_ADMIN": "iptables, in the node's own network namespace, is how packets vanish"}
# A published image mostly starts as root: it gives the data folder to the server's user, and becomes that user.
SERVER: Final = {
    "CHOWN": "chown of the data folder, which the image or a fresh volume gave to root",
    "DAC_OVERRIDE": "root looks into folders that belong to the server's user",
    "FOWNER": "chmod of files that belong to the server's user",
    "SETGID": "gosu, su-exec and setpriv take the group of the server's user",
    "SETUID": "and its user",
}
# Replies find no address outside to go to: packets leave under an address of the container, which nobody else knows.
UNTRANSLATED: Final = {"com.docker.network.bridge.enable_ip_masquerade": "false"}


def confined(capabilities: Iterable[str] = ()) -> dict[str, Any]:
    """What the engine is told when it creates a container that may have these capabilities, and no others."""
    return {
        "cap_drop": ["ALL"],
        "cap_add": sorted({name.removeprefix("CAP_") for name in capabilities}),
        "security_opt": ["no-new-privileges"],
    }


def capabilities_of(image: str, declared: Iterable[str]) -> tuple[str, ...]:
    """Those of a server: our own images begin as the user that they stay, and need none; `declared` are its own."""
    return (*(() if image in IMAGES else SERVER), *declared)


def private_network(client: docker.DockerClient, name: str, labels: Mapping[str, str], *, is_internal: bool) -> Network:
    """A new network. An internal one leads nowhere; but the engine publishes no port of who is in no other."""
    return client.networks.create(
        name, driver="bridge", internal=is_internal, options=dict(UNTRANSLATED), labels=dict(labels)
    )
