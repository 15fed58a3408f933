"""The server: one socket, one store, one token."""

import contextlib
import re
import resource
import secrets
import socket
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from threading import Thread
from typing import Final

import uvicorn

from harness.core.errors import ScenarioError
from harness.serve.app import Pages
from harness.serve.connections import HEAD_MAX, PENDING_MAX, WAITING_MAX, Connection, Waiting
from harness.serve.guard import TOKEN, Guard, own_names

PORT: Final = 8137
TOKEN_MIN: Final = 16
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.~-]*")


def serve(store: Path, host: str, port: int, token: str | None, tell: Callable[[str], None]) -> None:
    """Serve the store until the process is stopped. `tell` gets the address with the token, then warnings.

    Raises ScenarioError if there is no such store, the address is not available, or the token is too short.
    """
    if not store.is_dir():
        raise ScenarioError(f"{store}: there is no such folder; name a store with --store, or make one: seamark run")
    token = _token(token)
    family, place, address = _resolved(host, port)
    listening = _listening(host, port, family, place)
    pages = Pages(store)
    guard = Guard(pages.application(), token=token, hosts=own_names(host, str(address)))
    shown = f"[{host}]" if ":" in host else host
    tell(f"http://{shown}:{listening.getsockname()[1]}/?{TOKEN}={token}")
    if not address.is_loopback:
        tell(f"{host} can be reached from other machines without encryption: ssh -L to a loopback address is safer")
    Thread(target=_read_ahead, args=(pages,), name="read-ahead", daemon=True).start()
    _allow_connections()
    config = uvicorn.Config(
        guard,
        http=partial(Connection, Waiting()),  # type: ignore[arg-type]  # Called as the class would be.
        headers=[("connection", "close")],
        h11_max_incomplete_event_size=HEAD_MAX,
        backlog=PENDING_MAX,
        log_level="error",
        access_log=False,  # Lines of the access log would contain the token.
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    with listening, contextlib.closing(pages):
        uvicorn.Server(config).run(sockets=[listening])


def _read_ahead(pages: Pages) -> None:
    """Read the reports that the first request would have to wait for. Errors are left to that request."""
    with contextlib.suppress(Exception):
        pages.index.rows()


def _token(given: str | None) -> str:
    if given is None:
        return secrets.token_urlsafe(32)
    if len(given) < TOKEN_MIN or not _TOKEN.fullmatch(given):
        need = f"at least {TOKEN_MIN} letters, digits or signs of -_.~"
        raise ScenarioError(f"--token: it needs {need}; leave it out, and one is drawn")
    return given


def _resolved(host: str, port: int) -> tuple[int, tuple[str, int], IPv4Address | IPv6Address]:
    """The family, the place and the address to listen at: `host` may be a name, or a number in any form.

    Raises ScenarioError for one that means all interfaces: the host of requests could not be checked.
    """
    try:
        family, _, _, _, found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise _cannot_listen(host, port, error) from None
    address = ip_address(found[0])
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_unspecified:
        raise ScenarioError(f"--host {host}: name one address of this machine, so that requests can be checked by it")
    return family, (str(found[0]), int(found[1])), address


def _listening(host: str, port: int, family: int, place: tuple[str, int]) -> socket.socket:
    try:
        listening = socket.create_server(place, family=family)
    except OSError as error:
        raise _cannot_listen(host, port, error) from None
    listening.set_inheritable(False)
    return listening


def _cannot_listen(host: str, port: int, error: OSError) -> ScenarioError:
    why = (error.strerror or str(error)).partition(" (while ")[0]  # Python names the address there again.
    return ScenarioError(f"--host {host} --port {port}: cannot listen there ({why}); try --port 0")


def _allow_connections() -> None:
    """Raise this process's limit of open files: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * (WAITING_MAX + PENDING_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
