"""Calls to the engine from asyncio code: in threads, with errors in one line."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import requests
from docker.errors import APIError, DockerException
from docker.models.containers import Container

from harness.core.errors import DeployError

LOG_TAIL_LINES: Final = 5
SHORT_MAX: Final = 400  # The most characters of an engine's message.
T = TypeVar("T")


async def in_thread(work: Callable[..., T], *arguments: object) -> T:
    """The result of `work`, run in a thread. Raises DeployError if the engine does not answer.

    An interrupt waits for it: a container created during the removal would be left behind.
    """
    working = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
    except requests.RequestException as error:
        is_refusal = isinstance(error, APIError) and not error.is_server_error()
        what = "refuses" if is_refusal else "does not answer any more"
        raise DeployError(f"the Docker engine {what}: {short(error)}") from error


def short(error: Exception) -> str:
    """The engine's message, in one line. A long one keeps both ends: the cause is often at the end."""
    explanation = getattr(error, "explanation", None)
    text = " ".join(str(explanation if isinstance(explanation, str) and explanation else error).split())
    return text if len(text) <= SHORT_MAX else f"{text[: SHORT_MAX // 2]} ... {text[-SHORT_MAX // 2 :]}"


def tail_of(container: Container) -> str:
    """The last lines of a container's log, in one line."""
    try:
        text = container.logs(tail=LOG_TAIL_LINES).decode("utf-8", "replace")
    except DockerException:
        return "nothing that could be read"
    return " / ".join(line.strip() for line in text.splitlines() if line.strip()) or "nothing"
