"""Commands inside containers, with their complete output; and files.

docker's SDK reads the answer of `exec` from the bare socket. Bytes that came with the answer's head are in a buffer
above it, and lost: on a busy machine that is the whole output of a short command. So this module sends the same
request without upgrading the connection, and reads the body like any other.
"""

import io
import struct
import tarfile
import time
from pathlib import PurePosixPath
from typing import Final

import docker
import requests
from docker.errors import create_api_error_from_http_exception
from docker.models.containers import Container

_HEAD: Final = struct.Struct(">BxxxL")  # The head of a frame: the stream, and the number of bytes that follow.
_ENDED_WITHIN_S: Final = 5.0
_POLL_S: Final = 0.02


def output_of(api: docker.APIClient, container: str, command: list[str]) -> tuple[int | None, str]:
    """The exit code of a command in a container, and its output on both streams; no code if it does not end.

    Raises the exceptions of docker's SDK.
    """
    number = api.exec_create(container, command)["Id"]
    answer = api.post(
        f"{api.base_url}/v{api.api_version}/exec/{number}/start",
        json={"Detach": False, "Tty": False},
        timeout=api.timeout,
    )
    try:
        answer.raise_for_status()
    except requests.HTTPError as error:
        create_api_error_from_http_exception(error)
    deadline_s = time.monotonic() + _ENDED_WITHIN_S
    while (state := api.exec_inspect(number))["Running"] and time.monotonic() < deadline_s:
        time.sleep(_POLL_S)  # The streams end a little before the engine knows that the command has ended.
    return state["ExitCode"], joined(answer.content).decode("utf-8", "replace").strip()


def put(container: Container, path: str, content: bytes) -> None:
    """Write a file into a container, which may be stopped. Its folder must exist."""
    target = PurePosixPath(path)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo(target.name)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    container.put_archive(str(target.parent), archive.getvalue())


def joined(multiplexed: bytes) -> bytes:
    """Both streams of an answer as one; a truncated frame gives the bytes that arrived."""
    found, start = bytearray(), 0
    while start + _HEAD.size <= len(multiplexed):
        _, length = _HEAD.unpack_from(multiplexed, start)
        start += _HEAD.size
        found += multiplexed[start : start + length]
        start += length
    return bytes(found)
