"""A container's parts seen from this machine: its first process, its address, its network namespace.

All of it needs root, and an engine on this machine. That is checked before anything is done: with an engine elsewhere
the number of a container's process is here that of another one.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from docker.models.containers import Container

from harness.core.errors import DeployError

_PROGRAMS: Final = ("nsenter", "iptables")


def is_running(container: Container) -> bool:
    """True if the container has a process now."""
    container.reload()
    return bool(container.attrs["State"]["Pid"])


def process_of(container: Container) -> int:
    """The number of the container's first process. Raises DeployError if there is none here."""
    container.reload()
    number = int(container.attrs["State"]["Pid"])
    if not number:
        raise DeployError(f"{container.name} does not run")
    try:
        groups = Path(f"/proc/{number}/cgroup").read_text(encoding="utf-8")
    except OSError:
        groups = ""
    if str(container.id) not in groups:
        raise DeployError(f"{container.name} has no process on this machine: its engine must run here")
    return number


def address_of(container: Container) -> str:
    """The container's address in the first network that gives it one. Raises DeployError."""
    container.reload()
    for network in container.attrs["NetworkSettings"]["Networks"].values():
        if network["IPAddress"]:
            return str(network["IPAddress"])
    raise DeployError(f"{container.name} has no address")


def entry(container: Container) -> list[str]:
    """The beginning of a command that is to run in the container's network namespace. Raises DeployError."""
    return ["nsenter", "-t", str(process_of(container)), "-n"]


def filter_packets(container: Container, arguments: Sequence[str]) -> str:
    """The output of iptables with these arguments in the container's network namespace. Raises DeployError."""
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        raise DeployError(f"links between members are struck from this machine: install {missing[0]}")
    command = [*entry(container), "iptables", "-w", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  Our own arguments.
    if done.returncode != 0:
        told = " ".join(done.stderr.split()) or "no word"
        raise DeployError(f"iptables for {container.name} exited with {done.returncode}: {told}")
    return done.stdout
