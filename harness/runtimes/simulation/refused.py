"""The calls that the simulation's event loop refuses, each by name and with a replacement.

Waiting for the outside world would make a run depend on it. The stock base class raises NotImplementedError, which
does not name a remedy.
"""

import asyncio
from typing import Any, Final

from harness.core.errors import ScenarioError

_THREADS: Final = "it has one thread; await a coroutine instead"
_SOCKETS: Final = "use the Network and Connection that the client was given"
_PROCESSES: Final = "it starts no processes; model the other program as a node of the cluster"
_SIGNALS: Final = "use a fault plan to crash or pause a node"
_LOOP: Final = "use `run`, which has a result"


def _refused(name: str, instead: str) -> Any:  # Stands for methods of many types, none of which returns.
    def refuse(_: asyncio.AbstractEventLoop, *_args: object, **_named: object) -> None:
        raise ScenarioError(f"the simulation refuses {name}: {instead}")

    return refuse


class Secluded(asyncio.AbstractEventLoop):
    """An event loop without access to the outside world. Each refused method raises ScenarioError."""

    run_forever = _refused("run_forever", _LOOP)

    run_in_executor = _refused("run_in_executor", _THREADS)
    set_default_executor = _refused("set_default_executor", _THREADS)
    shutdown_default_executor = _refused("shutdown_default_executor", _THREADS)
    call_soon_threadsafe = _refused("call_soon_threadsafe", "it has one thread; use call_soon instead")

    getaddrinfo = _refused("getaddrinfo", _SOCKETS)
    getnameinfo = _refused("getnameinfo", _SOCKETS)
    create_connection = _refused("create_connection", _SOCKETS)
    create_server = _refused("create_server", _SOCKETS)
    create_unix_connection = _refused("create_unix_connection", _SOCKETS)
    create_unix_server = _refused("create_unix_server", _SOCKETS)
    create_datagram_endpoint = _refused("create_datagram_endpoint", _SOCKETS)
    connect_accepted_socket = _refused("connect_accepted_socket", _SOCKETS)
    start_tls = _refused("start_tls", _SOCKETS)
    sendfile = _refused("sendfile", _SOCKETS)
    sock_sendfile = _refused("sock_sendfile", _SOCKETS)
    sock_recv = _refused("sock_recv", _SOCKETS)
    sock_recv_into = _refused("sock_recv_into", _SOCKETS)
    sock_recvfrom = _refused("sock_recvfrom", _SOCKETS)
    sock_recvfrom_into = _refused("sock_recvfrom_into", _SOCKETS)
    sock_sendall = _refused("sock_sendall", _SOCKETS)
    sock_sendto = _refused("sock_sendto", _SOCKETS)
    sock_connect = _refused("sock_connect", _SOCKETS)
    sock_accept = _refused("sock_accept", _SOCKETS)
    add_reader = _refused("add_reader", _SOCKETS)
    remove_reader = _refused("remove_reader", _SOCKETS)
    add_writer = _refused("add_writer", _SOCKETS)
    remove_writer = _refused("remove_writer", _SOCKETS)

    subprocess_shell = _refused("subprocess_shell", _PROCESSES)
    subprocess_exec = _refused("subprocess_exec", _PROCESSES)
    connect_read_pipe = _refused("connect_read_pipe", _PROCESSES)
    connect_write_pipe = _refused("connect_write_pipe", _PROCESSES)

    add_signal_handler = _refused("add_signal_handler", _SIGNALS)
    remove_signal_handler = _refused("remove_signal_handler", _SIGNALS)
