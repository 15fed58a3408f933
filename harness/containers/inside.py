"""Commands inside of containers: what they say comes whole.

docker's SDK reads what `exec` answers from the bare socket. What has come with the answer's head is in a buffer above
it, and lost: on a busy machine that is all that a short command says. So the same is asked here without an upgrade of
the connection, and its body is read as any other.
"""

import struct
import time
from typing import Final

import docker
import requests
from docker.errors import create_api_error_from_http_exception

_HEAD: Final = struct.Struct(">BxxxL")  # Which stream, and how many bytes of it follow.
_ENDED_WITHIN_S: Final = 5.0
_POLL_S: Final = 0.02


def told(api: docker.APIClient, container: str, command: list[str]) -> tuple[int | None, str]:
    """The exit code of a command in a container, and what it said on both streams; no code if it does not end.

    Raises what docker's SDK raises.
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
        time.sleep(_POLL_S)  # Its streams end a little before it is known to have ended.
    return state["ExitCode"], joined(answer.content).decode("utf-8", "replace").strip()


def joined(multiplexed: bytes) -> bytes:
    """Both streams of an answer as one; of a frame that was cut off, what there is."""
    found, start = bytearray(), 0
    while start + _HEAD.size <= len(multiplexed):
        _, length = _HEAD.unpack_from(multiplexed, start)
        start += _HEAD.size
        found += multiplexed[start : start + length]
        start += length
    return bytes(found)
