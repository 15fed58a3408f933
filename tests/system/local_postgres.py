"""Servers of PostgreSQL 15 on this machine, for tests that need a real one and no container around it.

They are started with the arguments of the very services, under a user that may run a server, in a folder of their own.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from clusters.postgres.service import PRIMARY, STANDBY, USER, service
from harness.core.machine import NodeId, Settings
from harness.core.seams import Address, Doors

BIN = Path("/usr/lib/postgresql/15/bin")
READY_S = 20


def why_not() -> str | None:
    """Why no server can be started here, or None."""
    if not (BIN / "postgres").exists():
        return f"there is no PostgreSQL 15 in {BIN}"
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return "a server does not run as root, and there is no user postgres"
    return None


class Server:
    """One server: its folder, its door, and its process."""

    def __init__(self, node: NodeId, folder: Path, settings: Settings, peers: Doors) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.door = Address("127.0.0.1", free.getsockname()[1])
        self._arguments = service(node, peers, settings).command
        self._process: subprocess.Popen[bytes] | None = None

    def make(self, *command: str) -> None:
        """Make the folder with a command of the server's package."""
        subprocess.run([*_as_server(), str(BIN / command[0]), *command[1:]], check=True, capture_output=True)

    def start(self) -> None:
        """Start it, and return when it accepts connections."""
        own = ("-p", str(self.door.port), "-c", "unix_socket_directories=", "-c", "listen_addresses=127.0.0.1")
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            command = [*_as_server(), str(BIN / "postgres"), "-D", str(self.folder), *own, *self._arguments]
            self._process = subprocess.Popen(command, stderr=log, stdout=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + READY_S
        ready = [str(BIN / "pg_isready"), "-q", "-h", self.door.host, "-p", str(self.door.port)]
        while subprocess.run(ready, check=False).returncode != 0:
            assert self._process.poll() is None, "the server has ended: see its log"
            assert time.monotonic() < deadline, f"the server is not ready after {READY_S} s"
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL; its other processes end by themselves when they see it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


@contextmanager
def servers(settings: Settings, *, has_standby: bool = False) -> Iterator[dict[NodeId, Server]]:
    """A primary, and a standby of it if that is asked for; all is removed at the end."""
    folder = Path(mkdtemp(prefix="seamark-postgres-"))
    folder.chmod(0o777)
    primary = Server(PRIMARY, folder / PRIMARY, settings, {})
    found = {PRIMARY: primary}
    try:
        made = ("--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--wal-segsize=4", "--no-sync")
        primary.make("initdb", f"--pgdata={primary.folder}", f"--username={USER}", *made)
        primary.start()
        if has_standby:
            standby = Server(STANDBY, folder / STANDBY, settings, {PRIMARY: primary.door})
            words = f"host={primary.door.host} port={primary.door.port} user={USER}"
            source = ("--create-slot", f"--slot={STANDBY}", "--checkpoint=fast", "--no-sync", "-d", words)
            standby.make("pg_basebackup", f"--pgdata={standby.folder}", *source)
            (standby.folder / "standby.signal").touch()
            found[STANDBY] = standby
            standby.start()
        yield found
    finally:
        for server in found.values():
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _as_server() -> list[str]:
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"] if os.geteuid() == 0 else []
