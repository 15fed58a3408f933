"""The Docker engine that runs containers, as named by DOCKER_HOST or docker's current context."""

import os
import socket

import docker
from docker.context import ContextAPI
from docker.errors import DockerException

from harness.core.errors import DeployError

ANSWER_WITHIN_S = 5
CALL_WITHIN_S = 120  # The time limit of one call, such as a stop, or the pull of a layer.
UNIX = "unix://"
API_MIN = (1, 41)  # Docker 20.10.

_REMEDIES = {
    "PermissionError": "you may not use it: run as root, or add yourself to the group docker and log in again",
    "FileNotFoundError": "no engine is there: start it (as root on Debian: scripts/docker), or set DOCKER_HOST",
    "onnection refused": "no engine listens there: start it (as root on Debian: scripts/docker), or set DOCKER_HOST",
    "imeout": "it did not answer in time: restart it, or set DOCKER_HOST",
    "imed out": "it did not answer in time: restart it, or set DOCKER_HOST",
    "NameResolutionError": "its host's name is not known: set DOCKER_HOST",
}


def connect(answer_within_s: int = ANSWER_WITHIN_S) -> docker.DockerClient:
    """A client of an engine that has just answered. Raises DeployError, with the remedy, if none did."""
    address = ""
    try:
        address = _address()
        if address.startswith(UNIX):
            _knock(address, answer_within_s)
        client = docker.from_env(timeout=answer_within_s)
        client.ping()
        version = str(client.version()["ApiVersion"])
    except (DockerException, OSError) as error:  # requests' own errors are OSErrors.
        raise DeployError(f"no Docker engine at {address or 'any address'}: {_remedy(error)}") from error
    if tuple(int(part) for part in version.split(".")) < API_MIN:
        raise DeployError(f"the Docker engine at {address} speaks API {version}: 20.10 (API 1.41) or newer is needed")
    client.api.timeout = CALL_WITHIN_S
    return client


def _address() -> str:
    """The address that the SDK will use: DOCKER_HOST, or else docker's current context."""
    named = os.environ.get("DOCKER_HOST")
    return named or ContextAPI.kwargs_from_context().get("base_url", f"{UNIX}/var/run/docker.sock")


def _knock(address: str, answer_within_s: int) -> None:
    """Connect once and hang up. If connecting failed inside the SDK, it would leave a socket open."""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(answer_within_s)
        door.connect(address.removeprefix(UNIX))


def _remedy(error: Exception) -> str:
    text = repr(error)
    return next((remedy for word, remedy in _REMEDIES.items() if word in text), str(error))
