"""Published images: what a registry answered is recorded, and a digest that a person pins is what is built on."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound

from harness.core.errors import DeployError
from harness.core.seams import Service
from harness.runtimes.containers.images.catalogue import BASES_LABEL, DEBIAN, Base, Image, Way, tag_of
from harness.runtimes.containers.images.images import Ready, ensure, image_of
from harness.runtimes.containers.images.pins import VARIABLE
from tests.system.registry import Registry, serving

pytestmark = pytest.mark.docker


@pytest.fixture
def registry(engine: docker.DockerClient) -> Iterator[Registry]:
    """A registry, whose images are gone from the engine afterwards."""
    with serving(str(engine.version()["Arch"])) as found:
        yield found
        forget(engine, found)


@pytest.fixture
def image(registry: Registry, tmp_path: Path) -> Image:
    """An image that stands on what the registry's tag names."""
    (tmp_path / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nCOPY unique /unique\n", encoding="utf-8")
    (tmp_path / "unique").write_text(str(tmp_path), encoding="utf-8")
    base = Base(argument="BASE", published=f"{registry.repository}:1", debian=DEBIAN)
    return Image(name="seamark-try-pinned", recipe=str(tmp_path), bases=(base,))


def forget(engine: docker.DockerClient, registry: Registry) -> None:
    """Remove from the engine what it has of the registry."""
    for digest in registry.held:
        with suppress(ImageNotFound):
            engine.images.remove(f"{registry.repository}@{digest}", force=True)
    with suppress(ImageNotFound):
        engine.images.remove(f"{registry.repository}:1", force=True)


def built(engine: docker.DockerClient, image: Image) -> tuple[tuple[str, ...], list[str]]:
    """What is told of an image's bases when it is built and when it is there, and the layers below its own."""
    result: list[Ready] = []
    tag = ensure(engine, image, way=Way.PUBLISHED, tell=result.append)
    assert ensure(engine, image, way=Way.PUBLISHED, tell=result.append) == tag
    found = engine.images.get(tag)
    engine.images.remove(tag)
    assert [each.is_new for each in result] == [True, False]
    assert result[0].bases == result[1].bases == tuple(found.labels[BASES_LABEL].split(", "))
    return result[0].bases, found.attrs["RootFS"]["Layers"][:1]


def test_the_digest_that_the_registry_answered_is_recorded(
    engine: docker.DockerClient, registry: Registry, image: Image
) -> None:
    first = registry.publish("first")
    assert built(engine, image)[0] == (f"{registry.repository}:1@{first}",)


def test_a_pinned_base_is_taken_whatever_its_tag_names_meanwhile(
    engine: docker.DockerClient, registry: Registry, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = registry.publish("first")
    floating = tag_of(image, Way.PUBLISHED)
    _, layers = built(engine, image)
    forget(engine, registry)
    registry.publish("second")
    monkeypatch.setenv(VARIABLE, f"other:1@sha256:{'0' * 64} {registry.repository}:1@{first}")
    assert tag_of(image, Way.PUBLISHED) != floating
    assert built(engine, image) == ((f"{registry.repository}:1@{first}",), layers)
    monkeypatch.delenv(VARIABLE)
    assert built(engine, image)[1] != layers


def test_a_digest_that_the_registry_has_not_is_refused(
    engine: docker.DockerClient, registry: Registry, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.publish("first")
    monkeypatch.setenv(VARIABLE, f"{registry.repository}:1@sha256:{'0' * 64}")
    with pytest.raises(DeployError, match=r"@sha256:0{64}' could not be pulled"):
        ensure(engine, image, way=Way.PUBLISHED)


def test_a_system_s_own_image_can_be_pinned_as_well(
    engine: docker.DockerClient, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = registry.publish("first")
    registry.publish("second")
    monkeypatch.setenv(VARIABLE, f"{registry.repository}:1@{first}")
    service = Service(image=f"{registry.repository}:1", port=1, hello=b"", folder="/data")
    reference = image_of(service, engine)
    assert reference == f"{registry.repository}:1@{first}"
    assert f"{registry.repository}@{first}" in engine.images.get(reference).attrs["RepoDigests"]
