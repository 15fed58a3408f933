"""The log of a container, kept as a file of the run."""

import contextlib
from pathlib import Path

import docker
from docker.errors import DockerException
from docker.models.containers import Container

from harness.runtimes.containers.images.pins import identity_of


def save_log(client: docker.DockerClient, container: Container, path: Path) -> None:
    """Write the container's output to that file, after the identity of its image."""
    text = b""
    with contextlib.suppress(DockerException):
        text = container.logs(timestamps=True)
        image = str(container.attrs["Config"]["Image"])
        text = f"image: {identity_of(client, image)}\n".encode() + text
    with contextlib.suppress(OSError):  # No space is left there; containers are removed all the same.
        path.write_bytes(text)
