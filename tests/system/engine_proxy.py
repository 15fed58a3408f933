"""A way to the engine that can be cut: what dies with it is our connection, not the engine that others use."""

import contextlib
import os
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

READ_BYTES = 1 << 16


class EngineProxy:
    """Listens on a socket in `folder`, and passes on to the engine what comes there, and back.

    What comes back is held for `held_s` first, so that all of an answer arrives at once, as on a busy machine.
    """

    def __init__(self, folder: Path, *, held_s: float = 0.0) -> None:
        self._held_s = held_s
        named = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        assert named.startswith("unix://"), "the engine must be reached by a socket of this machine"
        self._engine = named.removeprefix("unix://")
        self._path = folder / "engine.sock"
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self._path))
        self._door.listen()
        self._open: list[socket.socket] = []
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def host(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self._path}"

    def cut(self) -> None:
        """From now on nobody is there."""
        self._is_cut = True
        self._path.unlink(missing_ok=True)
        for each in (self._door, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._door.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._engine)
                self._open += (near, far)
                if self._is_cut:
                    self.cut()
                for source, target, held_s in ((near, far, 0.0), (far, near, self._held_s)):
                    threading.Thread(target=_pass_on, args=(source, target, held_s), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, held_s: float) -> None:
    with contextlib.suppress(OSError):
        while received := source.recv(READ_BYTES, socket.MSG_PEEK):
            time.sleep(held_s)
            received = source.recv(READ_BYTES)
            target.sendall(received)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
