"""Where no registry answers, a service's image is built from Debian's packages; what is there already is taken."""

import docker
import pytest

from harness.core.errors import DeployError
from harness.core.seams import Service
from harness.runtimes.containers.engine.labels import labels_for
from harness.runtimes.containers.images.catalogue import Way, of_packages, tag_of
from harness.runtimes.containers.images.images import image_for, image_of, is_there

pytestmark = pytest.mark.docker

NOWHERE = "127.0.0.1:1/seamark-none:1"  # No registry listens there.


def service(image: str = "", *packages: str, folder: str = "/data/own") -> Service:
    return Service(image=image, debian_packages=packages, port=6379, hello=b"PING\r\n", folder=folder)


def said(engine: docker.DockerClient, tag: str, script: str) -> str:
    container = engine.containers.create(tag, ["sh", "-c", script], labels=labels_for("tests"))
    try:
        container.start()
        container.wait()
        output = container.logs()
        assert isinstance(output, bytes)
        return output.decode().strip()
    finally:
        container.remove(force=True)


def test_an_image_that_cannot_be_pulled_is_built_from_packages_with_its_folder_and_nothing_started(
    engine: docker.DockerClient,
) -> None:
    tag = image_of(service(NOWHERE, "redis-server"), engine)
    assert tag in [tag_of(of_packages(("redis-server",), "/data/own"), way) for way in Way]
    assert said(engine, tag, "redis-server --version && ls -d /data/own && pidof redis-server").splitlines()[1:] == [
        "/data/own"
    ]
    assert image_of(service(NOWHERE, "redis-server"), engine) == tag


def test_an_image_that_the_engine_has_is_taken_before_packages(engine: docker.DockerClient) -> None:
    there = image_for("seamark-toxiproxy", engine)
    assert image_of(service(there, "no-such-package"), engine) == there
    assert image_of(service("seamark-toxiproxy", "no-such-package"), engine) == there


def test_without_a_registry_and_without_packages_both_ways_out_are_told(engine: docker.DockerClient) -> None:
    with pytest.raises(DeployError, match=r"127\.0\.0\.1:1/seamark-none:1.*docker pull.*debian_packages"):
        image_of(service(NOWHERE), engine)
    assert not is_there(engine, NOWHERE)


def test_a_package_that_does_not_exist_is_named(engine: docker.DockerClient) -> None:
    with pytest.raises(DeployError, match="Unable to locate package no-such-package"):
        image_of(service("", "no-such-package"), engine)


def test_the_folder_and_the_packages_are_in_the_tag() -> None:
    tags = {tag_of(of_packages(packages, folder), Way.DEBIAN) for packages in (("a",), ("a", "b")) for folder in "xy"}
    assert len(tags) == 4
