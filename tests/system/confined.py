"""Deployments without load, for tests of what containers may do."""

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import docker
import msgspec

from harness.containers.control import Hearers, Probes
from harness.containers.crew import Crew
from harness.containers.deployment import Deployment
from harness.containers.machines import Blueprint, Machines
from harness.containers.services import ServiceBlueprint, Services
from harness.core.machine import NodeId, Settings
from harness.core.seams import Doors, Service
from harness.registry import code_of, load_machines
from harness.scenario import Scenario, decide
from tests.system.notebook import notebook, service


def machines(*faults: str) -> Machines:
    """Nodes of the tutorial, prepared for those faults."""
    cluster = load_machines("tutorial")
    blueprint = Blueprint(
        run_id=secrets.token_hex(4),
        cluster=cluster,
        code=code_of("tutorial"),
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
