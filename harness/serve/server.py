"""The server: one socket, one store, one token."""

import contextlib
import re
import secrets
import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import Final

import uvicorn

from harness.core.errors import ScenarioError
from harness.serve.app import Pages
from harness.serve.guard import TOKEN, Guard, is_loopback, own_names

PORT: Final = 8137
TOKEN_MIN: Final = 16
CONNECTIONS_MAX: Final = 200
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.~-]*")


def serve(store: Path, host: str, port: int, token: str | None, tell: Callable[[str], None]) -> None:
    """Serve the store until the process is stopped. `tell` gets the address with the token, then warnings.

    Raises ScenarioError if there is no such store, the address is not available, or the token is too short.
    """
    if not store.is_dir():
        raise ScenarioError(f"{store}: there is no such folder; name a store with --store, or make one: seamark run")
    token = _token(token)
    _require_address(host)
    listening = _listening(host, port)
    pages = Pages(store)
    guard = Guard(pages.application(), token=token, hosts=own_names(host))
    shown = f"[{host}]" if ":" in host else host
    tell(f"http://{shown}:{listening.getsockname()[1]}/?{TOKEN}={token}")
    if not is_loopback(host):
        tell(f"{host} can be reached from elsewhere, and nothing is encrypted: ssh -L to a loopback address is safer")
    Thread(target=_read_ahead, args=(pages,), name="read-ahead", daemon=True).start()
    config = uvicorn.Config(
        guard,
        log_level="error",
        access_log=False,  # Lines of the access log would contain the token.
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        limit_concurrency=CONNECTIONS_MAX,
        timeout_graceful_shutdown=1,
    )
    with listening:
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


def _require_address(host: str) -> None:
    """Raise ScenarioError for an address that means all interfaces: the host of requests could not be checked."""
    with contextlib.suppress(ValueError):
        if ip_address(host).is_unspecified:
            raise ScenarioError(
                f"--host {host}: name one address of this machine, so that requests can be checked by it"
            )


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while ")[0]  # Python names the address there again.
        raise ScenarioError(f"--host {host} --port {port}: cannot listen there ({why}); try --port 0") from None
    listening.set_inheritable(False)
    return listening
