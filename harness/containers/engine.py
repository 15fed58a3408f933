"""The Docker engine that runs containers: the one that DOCKER_HOST or docker's current context names."""

import os

import docker
from docker.errors import DockerException

from harness.core.errors import DeployError

ANSWER_WITHIN_S = 5
CALL_WITHIN_S = 120  # One call: a stop, a pull of a layer.
API_MIN = (1, 41)  # Docker 20.10.

_REMEDIES = {
    "PermissionError": "you may not use it: run as root, or add yourself to the group docker and log in again",
    "FileNotFoundError": "none is there: start it (as root on Debian: scripts/docker), or set DOCKER_HOST",
    "onnection refused": "nothing listens there: start it (as root on Debian: scripts/docker), or set DOCKER_HOST",
    "imeout": f"it did not answer within {ANSWER_WITHIN_S} s: restart it, or set DOCKER_HOST",
    "NameResolutionError": "its host's name is not known: set DOCKER_HOST",
}


def connect(answer_within_s: int = ANSWER_WITHIN_S) -> docker.DockerClient:
    """A client of an engine that has just answered. Raises DeployError, with what to do, if none did."""
    try:
        client = docker.from_env(timeout=answer_within_s)
        client.ping()
        version = str(client.version()["ApiVersion"])
    except (DockerException, OSError) as error:  # requests' own errors are OSErrors.
        raise DeployError(f"no Docker engine at {_address()}: {_remedy(error)}") from error
    if tuple(int(part) for part in version.split(".")) < API_MIN:
        raise DeployError(
            f"the Docker engine at {_address()} speaks API {version}: 20.10 (API 1.41) or newer is needed"
        )
    client.api.timeout = CALL_WITHIN_S
    return client


def _address() -> str:
    return os.environ.get("DOCKER_HOST") or "its usual address"


def _remedy(error: Exception) -> str:
    text = repr(error)
    return next((remedy for word, remedy in _REMEDIES.items() if word in text), str(error))
