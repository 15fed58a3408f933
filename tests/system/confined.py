"""Deployments without load, for tests of what containers may do, and a neighbour of this machine to be reached."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import docker
import msgspec
import pytest

from harness.core.machine import NodeId, Settings
from harness.core.seams import Doors, Service
from harness.runtimes.containers.control import Hearers, Probes
from harness.runtimes.containers.crew import Crew
from harness.runtimes.containers.deployment import Deployment
from harness.runtimes.containers.machines import Blueprint, Machines
from harness.runtimes.containers.services import ServiceBlueprint, Services
from harness.scenario.consent import installed
from harness.scenario.registry import load_machines, module_of
from harness.scenario.scenario import Scenario, decide
from tests.system.notebook import notebook, service

PORT: Final = 8765
SERVE: Final = f"""
import socket
door = socket.create_server(("0.0.0.0", {PORT}))
print("listening", flush=True)
while True:
    door.accept()[0].close()
"""


def machines(*faults: str) -> Machines:
    """Nodes of the tutorial, prepared for those faults."""
    cluster = load_machines(installed("tutorial"))
    blueprint = Blueprint(
        run_id=secrets.token_hex(4),
        cluster=cluster,
        code=module_of(installed("tutorial")),
        settings=decide(Scenario(cluster="tutorial", seed=3, runtime="docker"), cluster).settings,
        seed=3,
        epoch_ns=time.monotonic_ns(),
        epoch_realtime_ns=time.time_ns(),
        faults=frozenset(faults),
    )
    return Machines(blueprint, Hearers(take=lambda *_: None, failed=lambda *_: None, probes=Probes()))


def servers(image: str, *capabilities: str) -> Services:
    """The notebook's server in that image, which declares those capabilities."""

    def declared(node: NodeId, peers: Doors, settings: Settings) -> Service:
        return msgspec.structs.replace(service(node, peers, settings), image=image, capabilities=capabilities)

    cluster = replace(notebook(), service=declared)
    return Services(ServiceBlueprint(run_id=secrets.token_hex(4), cluster=cluster, settings=Settings()))


@asynccontextmanager
async def deployed(engine: docker.DockerClient, crew: Crew) -> AsyncIterator[Deployment]:
    """Its containers, which are gone afterwards."""
    deployment = Deployment(engine, crew)
    try:
        await deployment.open()
        yield deployment
    finally:
        await deployment.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Another machine on a link to this one: it has a network of its own, and no route to containers."""

    host: str


@contextmanager
def neighbour() -> Iterator[Neighbour]:
    """One that accepts connections on PORT. Needs root, and iproute2."""
    ip = shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if sys.platform != "linux" or os.geteuid() != 0 or ip is None:
        pytest.skip("a network of its own, to stand for the outside, needs root on Linux and iproute2")
    drawn = secrets.token_hex(3)
    space, near, far = f"seamark-{drawn}", f"sm{drawn}a", f"sm{drawn}b"
    block = 4 * secrets.randbelow(1 << 14)  # Of 198.18.0.0/16, which is set apart for tests of networks (RFC 2544).
    here, there = (f"198.18.{block >> 8}.{(block & 255) + each}" for each in (1, 2))

    def run(*words: str) -> None:
        subprocess.run([ip, *words], check=True, capture_output=True, timeout=10)

    run("netns", "add", space)
    try:
        run("link", "add", near, "type", "veth", "peer", "name", far, "netns", space)
        run("addr", "add", f"{here}/30", "dev", near)
        run("link", "set", near, "up")
        run("-n", space, "addr", "add", f"{there}/30", "dev", far)
        run("-n", space, "link", "set", far, "up")
        command = [ip, "netns", "exec", space, sys.executable, "-c", SERVE]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline() == "listening\n"
                with closing(socket.create_connection((there, PORT), 5)):
                    yield Neighbour(host=there)
            finally:
                server.kill()
    finally:
        run("netns", "del", space)  # Its end of the link goes with it, and so does ours.
