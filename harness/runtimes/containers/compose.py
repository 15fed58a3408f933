"""A running docker compose project, found by the labels that compose gives to its containers.

Its servers suffer faults like our own, and are never removed. Toxiproxy joins their network, in the links of outside
parties: clients and subscribers. Between servers there is no proxy, so those links have no faults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import docker
from docker.errors import DockerException
from docker.models.containers import Container
from docker.models.networks import Network

from harness.core.errors import DeployError
from harness.core.machine import NodeId

PROJECT, SERVICE, ONE_OFF = (f"com.docker.compose.{name}" for name in ("project", "service", "oneoff"))
WITHOUT_NAMES = ("bridge", "host", "none")  # The engine's own networks, in which servers have no names.


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The containers of a project that are nodes, and the network that they share."""

    label: str  # Carried by all containers of the project.
    network: Network
    containers: Mapping[NodeId, Container]


def find_project(engine: docker.DockerClient, project: str, nodes: Sequence[NodeId]) -> Found:
    """The containers of the services named like the nodes. Raises DeployError if one is missing or not running."""
    label = f"{PROJECT}={project}"
    try:
        listed = engine.containers.list(all=True, filters={"label": label})
        if not listed:
            others = {each.labels[PROJECT] for each in engine.containers.list(filters={"label": PROJECT})}
            raise DeployError(
                f"no docker compose project {project!r} runs here; running: {', '.join(sorted(others)) or 'none'}"
            )
        containers = {node: _of_service(listed, project, node) for node in nodes}
        return Found(label=label, network=_shared(engine, project, containers), containers=containers)
    except DockerException as error:
        raise DeployError(f"the project {project!r} cannot be looked at: {error}") from error


def _of_service(listed: Sequence[Container], project: str, node: NodeId) -> Container:
    """The one container of that service."""
    permanent = [each for each in listed if each.labels.get(ONE_OFF, "False") != "True"]
    found = [each for each in permanent if each.labels.get(SERVICE) == node]
    if len(found) == 1 and found[0].status == "running":
        return found[0]
    services = ", ".join(sorted({each.labels.get(SERVICE, "?") for each in permanent}))
    what = f"is {found[0].status}" if len(found) == 1 else f"has {len(found)} containers"
    raise DeployError(
        f"the service {node} of {project} {what}: each node needs one that runs, under the node's name; "
        f"the project has {services}"
    )


def _shared(engine: docker.DockerClient, project: str, containers: Mapping[NodeId, Container]) -> Network:
    """A network that all of them share: the project's own, if there are several."""
    joined = [sorted(each.attrs["NetworkSettings"]["Networks"]) for each in containers.values()]
    shared = [name for name in joined[0] if all(name in names for names in joined) and name not in WITHOUT_NAMES]
    if not shared:
        raise DeployError(f"the services of {project} share no private network")
    usual = f"{project}_default"
    return engine.networks.get(usual if usual in shared else shared[0])
