"""Removes leftovers of dead harnesses in an engine and on this machine, unless an owner may still need them.

Two concurrent sweepers, or a harness that cleans up meanwhile, are no error: objects already gone are skipped, and
those that another is removing are waited for.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException

from harness.core.errors import DeployError
from harness.record.ownership import Fate, files_left_behind, remove_left_behind
from harness.runtimes.containers.engine.labels import RUN, owner_of

GONE = 404
BUSY = {403, 409}  # Two states: used by something that is being removed, and being removed itself.
LOOKS, PAUSE_S = 40, 0.25  # The number of looks at busy objects, and the time between two.


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """One removed object."""

    kind: str  # "container", "network", "volume" or "folder".
    name: str
    run: str | None  # The run for which it was created.


def sweep(client: docker.DockerClient, *, everything: bool = False) -> tuple[Swept, ...]:
    """Remove our containers, networks and volumes whose owner is gone; returns those removed.

    `everything` includes those of other machines, whose owners cannot be seen from here; never those of a live owner.
    """
    return tuple(_removed(client, RUN, _owned_by({Fate.GONE, Fate.ELSEWHERE} if everything else {Fate.GONE})))


def left_behind(client: docker.DockerClient) -> tuple[Swept, ...]:
    """The objects that `sweep` would remove now. Removes nothing."""
    return tuple(_swept(kind, each) for kind, each in _found(client, RUN, _owned_by({Fate.GONE})))


def remove_run(client: docker.DockerClient, run_id: str) -> tuple[Swept, ...]:
    """Remove everything with one run's id, whoever owns it; returns the removed objects."""
    return tuple(_removed(client, f"{RUN}={run_id}", lambda labels: labels.get(RUN) == run_id))


def sweep_folders() -> tuple[Swept, ...]:
    """Remove temporary folders of this user's dead harnesses on this machine; returns those removed."""
    removed = remove_left_behind(Path(tempfile.gettempdir()))
    return tuple(Swept(kind="folder", name=str(folder), run=None) for folder in removed)


def folders_left_behind() -> tuple[Path, ...]:
    """The folders that `sweep_folders` would remove now."""
    return files_left_behind(Path(tempfile.gettempdir()))


def _owned_by(fates: set[Fate]) -> Callable[[Mapping[str, str]], bool]:
    def is_ours(labels: Mapping[str, str]) -> bool:
        owner = owner_of(labels)
        return owner is not None and owner.fate() in fates

    return is_ours


def _removed(client: docker.DockerClient, label: str, is_ours: Callable[[Mapping[str, str]], bool]) -> Iterator[Swept]:
    """Remove our objects, and look again while some of them are busy, for up to 10 s."""
    try:
        for _ in range(LOOKS):
            is_any_busy = False
            for kind, each in _found(client, label, is_ours):
                status = _status_of_removal(kind, client.api, each)
                is_any_busy |= status in BUSY
                if status is None:
                    yield _swept(kind, each)
            if not is_any_busy:
                return
            time.sleep(PAUSE_S)
    except (DockerException, OSError) as error:
        raise DeployError(f"leftovers of dead runs could not be removed: {error}") from error


def _found(
    client: docker.DockerClient, label: str, is_ours: Callable[[Mapping[str, str]], bool]
) -> Iterator[tuple["_Kind", "_Row"]]:
    """Our existing objects. A kind is listed only after the caller has dealt with the previous kind."""
    for kind in KINDS:
        for each in kind.listed(client.api, {"label": label}):
            if is_ours(each["Labels"] or {}):
                yield kind, each


def _swept(kind: "_Kind", each: "_Row") -> Swept:
    return Swept(kind=kind.word, name=kind.name(each), run=(each["Labels"] or {}).get(RUN))


def _status_of_removal(kind: "_Kind", api: docker.APIClient, each: "_Row") -> int | None:
    """None if we removed the object; else the HTTP status that says why not: `GONE`, or one of `BUSY`."""
    try:
        kind.remove(api, each)
    except APIError as error:
        if error.status_code not in {GONE, *BUSY}:
            raise
        return int(error.status_code)
    return None


_Row = dict[str, Any]  # An object as the engine lists it.


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of object: how it is listed, named and removed."""

    word: str
    listed: Callable[[docker.APIClient, dict[str, str]], list[_Row]]
    name: Callable[[_Row], str]
    remove: Callable[[docker.APIClient, _Row], None]


# Containers first: a network or a volume in use cannot be removed.
KINDS = (
    _Kind(
        "container",
        lambda api, filters: api.containers(all=True, filters=filters),
        lambda row: (row["Names"] or [row["Id"]])[0].removeprefix("/"),
        lambda api, row: api.remove_container(row["Id"], force=True, v=True),
    ),
    _Kind(
        "network",
        lambda api, filters: api.networks(filters=filters),
        lambda row: row["Name"],
        lambda api, row: api.remove_network(row["Id"]),
    ),
    _Kind(
        "volume",
        lambda api, filters: api.volumes(filters=filters)["Volumes"] or [],
        lambda row: row["Name"],
        lambda api, row: api.remove_volume(row["Name"]),
    ),
)
