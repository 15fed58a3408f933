"""Toxiproxy's HTTP interface: the proxies of one run, and the faults on their connections.

Only this file uses toxiproxy-python, whose host and port are global: each run derives a class of its own, so that two
runs in one process do not use each other's server. All methods block, for TIMEOUT_S at most, and raise DeployError
with one line; call them by asyncio.to_thread.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

import requests
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from harness.core.errors import DeployError

Stream = Literal["upstream", "downstream"]  # upstream: from the dialling side to the listening side.
TIMEOUT_S: Final = 5.0
CUT: Final = "cut"
DOWN: Final = "down"  # Nothing listens behind the proxy.
_NO_PROXY: Final = {"http": ""}  # Ignores HTTP_PROXY: the server is on loopback.


class Toxic(NamedTuple):
    """A disturbance of one direction of all connections of a proxy. `name` is unique in that proxy."""

    name: str
    kind: str  # latency, bandwidth, slicer, limit_data, reset_peer, ...
    stream: Stream
    attributes: Mapping[str, int]


class Proxy(NamedTuple):
    """A proxy as the server reports it."""

    listen: str
    upstream: str
    is_enabled: bool
    toxics: tuple[Toxic, ...]


class Toxiproxy:
    """The Toxiproxy server of one run."""

    def __init__(self, host: str, port: int) -> None:
        self._where = f"{host}:{port}"
        self._shut: dict[str, set[str]] = {}  # The reasons why each proxy is disabled.
        self._server: Any = type("Server", (APIConsumer,), {"host": host, "port": port})

    def version(self) -> str:
        """The server's version, which shows that it answers."""
        return self._ask(self._server.get, "/version").text.strip()

    def create(self, name: str, listen: str, upstream: str) -> None:
        """Create a proxy, enabled. `listen` and `upstream` are host:port."""
        self._ask(self._server.post, "/proxies", {"name": name, "listen": listen, "upstream": upstream})

    def enable(self, name: str, reason: str = CUT) -> None:
        """Accept connections again, unless the proxy is disabled for another reason as well."""
        reasons = self._shut.setdefault(name, set())
        reasons.discard(reason)
        if not reasons:
            self._ask(self._server.post, _path(name), {"enabled": True})

    def disable(self, name: str, reason: str = CUT) -> None:
        """Close all its connections and refuse new ones, for that reason."""
        self._shut.setdefault(name, set()).add(reason)
        self._ask(self._server.post, _path(name), {"enabled": False})

    def add_toxic(self, name: str, toxic: Toxic) -> None:
        """Add a toxic to all connections of that proxy, existing ones included."""
        wish = {
            "name": toxic.name,
            "type": toxic.kind,
            "stream": toxic.stream,
            "toxicity": 1.0,
            "attributes": dict(toxic.attributes),
        }
        self._ask(self._server.post, f"{_path(name)}/toxics", wish)

    def remove_toxic(self, name: str, toxic_name: str) -> None:
        """Remove a toxic; does nothing if it is gone."""
        self._ask(self._server.delete, f"{_path(name)}/toxics/{quote(toxic_name, safe='')}", is_gone_fine=True)

    def proxies(self) -> dict[str, Proxy]:
        """All proxies, by name."""
        return {name: _proxy(each) for name, each in self._fetched("/proxies").items()}

    def _fetched(self, path: str) -> Mapping[str, Any]:
        try:
            answer = self._ask(self._server.get, path).json()
        except requests.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise self._failed(path, b"the answer is not Toxiproxy's")
        return answer

    def _ask(
        self,
        method: Callable[..., requests.Response],
        path: str,
        wish: Mapping[str, object] | None = None,
        *,
        is_gone_fine: bool = False,
    ) -> requests.Response:
        body = {} if wish is None else {"json": wish}
        try:
            response = method(path, timeout=TIMEOUT_S, proxies=_NO_PROXY, **body)
        except NotFound as error:
            if is_gone_fine:
                return requests.Response()
            raise self._failed(path, error.args[0]) from None
        except (ProxyExists, InvalidToxic) as error:
            raise self._failed(path, error.args[0]) from None
        except requests.Timeout:
            raise self._failed(path, f"no answer within {TIMEOUT_S:g} s".encode()) from None
        except requests.RequestException as error:
            raise self._failed(path, f"cannot be reached ({type(error).__name__})".encode()) from None
        if not response.ok:
            raise self._failed(path, response.content)
        return response

    def _failed(self, path: str, answer: bytes) -> DeployError:
        found = re.search(rb'"error":"([^"]+)"', answer)
        words = " ".join((found[1] if found else answer).decode(errors="replace").split())[:300]
        return DeployError(f"Toxiproxy at {self._where}, {path}: {words or 'an error without words'}")


def _path(name: str) -> str:
    return f"/proxies/{quote(name, safe='')}"


def _proxy(answer: Mapping[str, Any]) -> Proxy:
    toxics = tuple(Toxic(each["name"], each["type"], each["stream"], each["attributes"]) for each in answer["toxics"])
    return Proxy(answer["listen"], answer["upstream"], answer["enabled"], toxics)
