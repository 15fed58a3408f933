"""The end of a container's processes: asked for, or at once."""

from typing import Final

from docker.errors import APIError
from docker.models.containers import Container

_CONFLICT: Final = 409
_KILLED: Final = 137  # The exit code after SIGKILL.
_STOP_WITHIN_S: Final = 10  # As `docker stop` gives it.


def stopped(container: Container) -> bool:
    """Ask the container to end, and kill it if it does not in time. True if it ended by itself."""
    container.stop(timeout=_STOP_WITHIN_S)
    return int(container.wait()["StatusCode"]) != _KILLED


def killed(container: Container) -> None:
    """Return once SIGKILL has ended all processes of the container, if it has any."""
    try:
        container.kill()
    except APIError as error:
        if error.status_code != _CONFLICT:  # It is not running.
            raise
    container.wait()
