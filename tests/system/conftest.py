"""The engine for tests that need one. Without it they are skipped with the reason, or fail where it is required."""

import os
from collections.abc import Iterator

import docker
import pytest

from harness.core.errors import DeployError
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.images.catalogue import NODE, TOXIPROXY
from harness.runtimes.containers.images.images import ensure


def pytest_configure(config: pytest.Config) -> None:
    """The SDK leaves connections of answers that it streams to the garbage collector, which comes when it likes."""
    config.addinivalue_line(
        "filterwarnings", r"ignore:unclosed <socket\.socket .*raddr=\S*docker\.sock:ResourceWarning"
    )


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A client of the engine that this machine has, with the images of all runs: where nothing is there, they take
    minutes, which no test has.
    """
    try:
        client = connect()
    except DeployError as error:
        if os.environ.get("SEAMARK_REQUIRE_DOCKER") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))
    for image in (NODE, TOXIPROXY):
        ensure(client, image)
    yield client
    client.close()
