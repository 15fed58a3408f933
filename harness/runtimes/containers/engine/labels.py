"""The labels that mark the containers, networks and volumes of a run as ours, and name the owning process."""

from collections.abc import Mapping

from harness.record.ownership import Owner, this_process

RUN, BOOT, PID, START, HOST = (f"seamark.{name}" for name in ("run", "boot", "pid", "start", "host"))


def labels_for(run_id: str, owner: Owner | None = None) -> dict[str, str]:
    """The labels for everything that a process, by default this one, creates for one run."""
    owner = owner or this_process()
    return {RUN: run_id, HOST: owner.host, BOOT: owner.boot, PID: str(owner.pid), START: str(owner.start)}


def owner_of(labels: Mapping[str, str]) -> Owner | None:
    """The owner that the labels name; None if they are not ours, or are malformed.

    Then the object must not be removed.
    """
    try:
        return Owner(host=labels[HOST], boot=labels[BOOT], pid=int(labels[PID]), start=int(labels[START]))
    except (KeyError, ValueError):
        return None
