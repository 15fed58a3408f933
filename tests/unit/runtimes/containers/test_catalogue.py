from dataclasses import replace
from pathlib import Path

import pytest

from harness.runtimes.containers.images import catalogue
from harness.runtimes.containers.images.catalogue import (
    DEBIAN,
    IMAGES,
    NODE,
    NODE_BASE,
    TOXIPROXY,
    TOXIPROXY_SERVER,
    Base,
    Image,
    Way,
    content_of,
    files_of,
    labels_of,
    needs,
    published_references,
    tag_of,
)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    folder = tmp_path / "recipe"
    folder.mkdir()
    (folder / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\n", encoding="utf-8")
    return folder


def image(recipe: Path) -> Image:
    return Image(name="seamark-try", recipe=str(recipe), bases=(Base(argument="BASE", published="x:1", debian=DEBIAN),))


def tags(each: Image) -> set[str]:
    return {tag_of(each, way) for way in Way}


def test_the_same_content_has_the_same_tag_and_the_two_ways_have_two(recipe: Path) -> None:
    assert tags(image(recipe)) == tags(image(recipe))
    assert len(tags(image(recipe))) == len(Way)


def test_whatever_goes_in_changes_the_tag(recipe: Path) -> None:
    plain = image(recipe)
    others = [
        replace(plain, wheels="wheels.txt"),
        replace(plain, bases=(Base(argument="BASE", published="x:2", debian=replace(DEBIAN, release="trixie")),)),
        replace(plain, parent=NODE_BASE, bases=()),
        replace(plain, sources=("harness/__init__.py",)),
    ]
    seen = tags(plain)
    for each in others:
        assert seen.isdisjoint(tags(each))
        seen |= tags(each)
    (recipe / "more").write_bytes(b"")
    assert seen.isdisjoint(tags(plain))


def test_debian_s_packages_count_only_where_they_are_installed(recipe: Path) -> None:
    plain, more = image(recipe), replace(image(recipe), debian_packages=("python3",))
    assert tag_of(plain, Way.PUBLISHED) == tag_of(more, Way.PUBLISHED)
    assert tag_of(plain, Way.DEBIAN) != tag_of(more, Way.DEBIAN)


def test_a_change_below_changes_what_stands_on_it(recipe: Path) -> None:
    child = replace(image(recipe), bases=(), parent=replace(image(recipe), name="seamark-below"))
    other = replace(child, parent=replace(image(recipe), name="seamark-below", wheels="wheels.txt"))
    assert tags(child).isdisjoint(tags(other))


def test_the_same_bytes_in_other_files_are_another_content(recipe: Path) -> None:
    (recipe / "ab").write_bytes(b"c")
    before = tags(image(recipe))
    (recipe / "ab").rename(recipe / "a")
    (recipe / "a").write_bytes(b"bc")
    assert before.isdisjoint(tags(image(recipe)))


def test_compiled_modules_are_no_content(recipe: Path) -> None:
    before = tags(image(recipe))
    (recipe / "__pycache__").mkdir()
    (recipe / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert tags(image(recipe)) == before


def test_a_base_made_here_does_not_depend_on_who_asks() -> None:
    assert tag_of(DEBIAN, Way.DEBIAN) == tag_of(DEBIAN, Way.PUBLISHED)
    assert needs(TOXIPROXY, Way.DEBIAN) == (("SERVER", TOXIPROXY_SERVER), ("BASE", DEBIAN))


def test_an_image_of_ours_says_what_it_is() -> None:
    labels = labels_of(NODE, Way.DEBIAN)
    assert labels["seamark.image"] == NODE.name
    assert labels["seamark.content"] == content_of(NODE, Way.DEBIAN)
    assert labels["seamark.content"].startswith(tag_of(NODE, Way.DEBIAN).partition(":")[2])


def test_a_node_holds_core_the_host_and_the_clusters_and_nothing_of_the_harness_besides() -> None:
    held = [path.removeprefix("sources/") for path, _ in files_of(NODE) if path.startswith("sources/harness/")]
    rooms = ("harness/core/", "harness/runtimes/host/")
    assert {path for path in held if not path.startswith(rooms)} == {
        "harness/__init__.py",
        "harness/runtimes/__init__.py",
    }
    assert all(any(path.startswith(room) for path in held) for room in rooms)
    assert any(path.startswith("sources/clusters/ndb/") for path, _ in files_of(NODE))


def test_every_image_has_a_recipe_and_the_same_toxiproxy_both_ways() -> None:
    for each in (*IMAGES.values(), NODE_BASE):
        assert "Dockerfile" in dict(files_of(each))
        assert "latest" not in " ".join(published_references(each))
    assert f":{TOXIPROXY_SERVER.version.removeprefix('v')}" in published_references(TOXIPROXY)[0]


def test_python_packages_of_a_node_have_the_version_and_the_hashes_of_the_lock() -> None:
    wheels = dict(files_of(NODE_BASE))[NODE_BASE.wheels].decode()
    wanted = [line for line in wheels.splitlines() if not line.startswith("#")]
    lock = (catalogue.ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert f"\n{chr(10).join(wanted)}\n    # via" in lock, "copy what requirements.lock has"
    assert sum("--hash=sha256:" in line for line in wanted) >= 2


def test_recipes_are_installed_with_the_package() -> None:
    project = (catalogue.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '"harness.runtimes.containers.images" = ["recipes/*/*"]' in project
    below = [path.relative_to(catalogue.RECIPES) for path in catalogue.RECIPES.rglob("*") if path.is_file()]
    assert {len(path.parts) for path in below} == {2}
