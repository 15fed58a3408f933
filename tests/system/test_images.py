from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import msgspec
import pytest

from harness.cli.images import images
from harness.core.errors import DeployError, ScenarioError
from harness.runtimes.containers.engine.labels import labels_for
from harness.runtimes.containers.images.catalogue import (
    IMAGES,
    NODE,
    NODE_BASE,
    TOXIPROXY_SERVER,
    Base,
    Image,
    Way,
    tag_of,
)
from harness.runtimes.containers.images.images import Ready, ensure, image_for, is_there, remove_images, way_of

pytestmark = pytest.mark.docker


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    folder = tmp_path / "recipe"
    folder.mkdir()
    return folder


@pytest.fixture
def image(engine: docker.DockerClient, recipe: Path) -> Image:
    """An image on top of the node's base, new in each test: its recipe is told by the test."""
    image_for(NODE.name, engine)
    (recipe / "unique").write_text(str(recipe), encoding="utf-8")
    return Image(name="seamark-try", recipe=str(recipe), parent=NODE_BASE)


def write(image: Image, *lines: str) -> None:
    text = "\n".join(("ARG BASE", "FROM ${BASE}", *lines))
    (Path(image.recipe) / "Dockerfile").write_text(text, encoding="utf-8")


def said(engine: docker.DockerClient, tag: str, *command: str, **options: Any) -> str:
    """What a command has printed in a container of that image: read at its end, as the SDK may lose what it streams."""
    container = engine.containers.create(tag, list(command), labels=labels_for("tests"), **options)
    try:
        container.start()
        container.wait()
        output = container.logs()
        assert isinstance(output, bytes)
        return output.decode().strip()
    finally:
        container.remove(force=True)


def forget(engine: docker.DockerClient, image: Image) -> None:
    for way in Way:
        if is_there(engine, tag_of(image, way)):
            engine.images.remove(tag_of(image, way))


def test_an_unchanged_image_is_not_built_again_and_a_changed_one_is_built_on_the_same_base(
    engine: docker.DockerClient, image: Image
) -> None:
    write(image, "COPY unique /unique")
    first: list[Ready] = []
    tag = ensure(engine, image, tell=first.append)
    found = engine.images.get(tag)
    assert found.labels["seamark.image"] == image.name

    second: list[Ready] = []
    assert ensure(engine, image, tell=second.append) == tag
    assert [each.is_new for each in second] == [False]
    assert engine.images.get(tag).id == found.id

    (Path(image.recipe) / "unique").write_text("another", encoding="utf-8")
    third: list[Ready] = []
    other = ensure(engine, image, tell=third.append)
    assert other != tag
    assert [(each.name, each.is_new) for each in third] == [(NODE_BASE.name, False), (image.name, True)]
    assert said(engine, tag, "cat", "/unique") == image.recipe
    assert said(engine, other, "cat", "/unique") == "another"
    engine.images.remove(tag)
    forget(engine, image)


def test_a_build_that_fails_half_way_leaves_no_image_and_says_what_failed_and_where_its_log_is(
    engine: docker.DockerClient, image: Image
) -> None:
    write(image, "RUN echo this much is done", "RUN echo the last words && exit 3")
    with pytest.raises(DeployError) as failed:
        ensure(engine, image)
    text = str(failed.value)
    assert "\n" not in text.strip()
    assert image.name in text
    assert "returned a non-zero code: 3" in text
    assert "the last words" in text
    log = Path(text.rpartition("all of it: ")[2])
    assert "this much is done" in log.read_text(encoding="utf-8")
    assert [path.name for path in log.parent.iterdir()] == [log.name]
    assert not any(is_there(engine, tag_of(image, way)) for way in Way)

    write(image, "RUN echo repaired")
    assert is_there(engine, ensure(engine, image))
    forget(engine, image)
    log.unlink()
    log.parent.rmdir()


def test_a_base_that_cannot_be_had_is_told_as_such(engine: docker.DockerClient, image: Image) -> None:
    write(image)
    base = Base(argument="BASE", published="127.0.0.1:1/seamark-none:1", debian=TOXIPROXY_SERVER)
    alone = replace(image, parent=None, bases=(base,))
    assert way_of(engine, alone) is Way.DEBIAN
    with pytest.raises(DeployError, match=r"127\.0\.0\.1:1"):
        ensure(engine, alone, way=Way.PUBLISHED)
    assert not is_there(engine, tag_of(alone, Way.PUBLISHED))


def test_two_harnesses_that_need_the_same_image_build_it_once(engine: docker.DockerClient, image: Image) -> None:
    write(image, "RUN sleep 0.3 && echo built")
    result: list[Ready] = []
    with ThreadPoolExecutor(2) as both:
        tags = list(both.map(lambda _: ensure(engine, image, tell=result.append), range(2)))
    assert tags[0] == tags[1]
    assert sorted(each.is_new for each in result if each.name == image.name) == [False, True]
    forget(engine, image)


def test_an_image_in_use_outlives_the_removal_of_images(engine: docker.DockerClient, image: Image) -> None:
    write(image, "COPY unique /unique")
    used = ensure(engine, image)
    container = engine.containers.create(used, ["true"], labels=labels_for("tests"))
    try:
        assert used not in remove_images(engine, name=image.name)
        assert is_there(engine, used)
    finally:
        container.remove(force=True)
    assert remove_images(engine, name=image.name) == (used,)
    assert not is_there(engine, used)


def test_a_name_that_is_none_of_ours_is_refused_with_the_nearest(engine: docker.DockerClient) -> None:
    with pytest.raises(ScenarioError, match="did you mean seamark-node"):
        image_for("seamark-nod", engine)


def test_a_node_has_the_harness_s_msgspec_and_starts_the_host_and_any_cluster(engine: docker.DockerClient) -> None:
    code = (
        "import sys, msgspec, harness.runtimes.host, harness.core.machine, clusters.ndb, clusters.tutorial;"
        "print(sys.version_info >= (3, 11), msgspec.__version__, 'numpy' in sys.modules)"
    )
    assert said(engine, image_for(NODE.name, engine), "python", "-c", code) == f"True {msgspec.__version__} False"


def test_a_node_can_drop_packets_and_can_be_told_another_time(engine: docker.DockerClient) -> None:
    node = image_for(NODE.name, engine)
    rules = "iptables -w -I OUTPUT -p tcp --dport 7000 -j DROP && iptables -S OUTPUT"
    assert "--dport 7000 -j DROP" in said(engine, node, "sh", "-c", rules, cap_add=["NET_ADMIN"])
    clocks = "import time; a = time.time() - time.monotonic(); print(round(a // 86400))"
    faked = {"LD_PRELOAD": "/usr/local/lib/libfaketime.so.1", "FAKETIME": "+10d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    plain = int(said(engine, node, "python", "-c", clocks))
    assert int(said(engine, node, "python", "-c", clocks, environment=faked)) - plain in (9, 10, 11)


def test_toxiproxy_is_the_version_that_the_catalogue_names(engine: docker.DockerClient) -> None:
    tag = image_for("seamark-toxiproxy", engine)
    assert f"version {TOXIPROXY_SERVER.version.removeprefix('v')}" in said(engine, tag, "toxiproxy-server", "-version")


def test_postgres_starts_and_answers(engine: docker.DockerClient) -> None:
    tag = ensure(engine, IMAGES["seamark-postgres"])
    asked = (
        "start-postgres -c wal_level=logical >/dev/null 2>&1 & n=0;"
        "until psql -qAt -U seamark -d postgres -c 'show wal_level' 2>/dev/null; do"
        " n=$((n + 1)); [ $n -lt 300 ] || exit 1; sleep 0.1; done"
    )
    assert said(engine, tag, "-c", asked, entrypoint=["sh"]) == "logical"


def test_the_command_says_of_each_image_what_became_of_it(
    engine: docker.DockerClient, capsys: pytest.CaptureFixture[str]
) -> None:
    tag = image_for("seamark-toxiproxy", engine)
    assert images(["seamark-toxiproxy"]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.split() == [tag, way_of(engine, IMAGES["seamark-toxiproxy"]).value, "already", "built"]
    assert last == "ready: 1; building took 0.0 s"


def test_two_ways_at_once_are_refused() -> None:
    with pytest.raises(ScenarioError, match="choose one"):
        images(["seamark-toxiproxy"], published=True, debian=True)
