"""The images for containers: the content of each, and its tag, which identifies the content.

An image is built in one of two variants. *published*: on the official image of Python, PostgreSQL and so on. *debian*:
without access to a registry, on a base made by debootstrap, with Debian's packages and programs compiled by Go's tool
chain. The same Dockerfile serves both: the names of its bases, and of further packages, are arguments.

A tag is the hash of all inputs, so an unchanged image is never rebuilt, and two versions of Seamark on one engine do
not use each other's images.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import assert_never

from harness.core.seams import Program
from harness.runtimes.containers.images.pins import pinned

RECIPES = Path(__file__).parent / "recipes"
ROOT = Path(__file__).resolve().parents[4]  # The folder of the packages, in a work tree or in an installation.
CONTENT_LABEL, IMAGE_LABEL, BASES_LABEL = "seamark.content", "seamark.image", "seamark.bases"


class Way(Enum):
    """The variant of an image: on published bases, or on Debian."""

    PUBLISHED = "published"
    DEBIAN = "debian"


@dataclass(frozen=True, slots=True, kw_only=True)
class Debootstrap:
    """The smallest Debian that can install packages, built on this machine."""

    release: str = "bookworm"
    name: str = "seamark-debian"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoProgram:
    """One program of a Go module, linked statically, as the only file of an image."""

    name: str
    package: str
    version: str
    version_variable: str  # Set by the linker, so that the program can report its version.
    path: str  # Its path, the same as in the published image.


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The value of one argument of a Dockerfile, in each variant."""

    argument: str
    published: str
    debian: Debootstrap | GoProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The inputs of an image. `parent` is another image of ours, passed to the Dockerfile as BASE."""

    name: str
    recipe: str  # The folder in recipes/ (or its full path) with the Dockerfile and all files that it copies.
    bases: tuple[Base, ...] = ()
    parent: "Image | None" = None
    packages: tuple[str, ...] = ()  # Debian packages, installed in both variants.
    debian_packages: tuple[str, ...] = ()  # Installed in the debian variant only: the published base has them already.
    folder: str = ""  # Created if missing: passed to the Dockerfile as FOLDER.
    wheels: str = (
        ""  # The recipe's list of Python packages with hashes, unpacked into wheels/ of the Dockerfile's folder.
    )
    sources: tuple[str, ...] = ()  # Python files and folders of ours, copied to sources/ of the Dockerfile's folder.
    programs: tuple[Program, ...] = ()  # Copied to programs/ of the Dockerfile's folder.


Buildable = Image | Debootstrap | GoProgram

DEBIAN = Debootstrap()
TOXIPROXY_SERVER = GoProgram(
    name="seamark-toxiproxy-server",
    package="github.com/Shopify/toxiproxy/v2/cmd/server",
    version="v2.5.0",
    version_variable="github.com/Shopify/toxiproxy/v2.Version",
    path="/toxiproxy",
)
NODE_BASE = Image(
    name="seamark-node-base",
    recipe="node-base",
    bases=(Base(argument="BASE", published="python:3.11-slim-bookworm", debian=DEBIAN),),
    debian_packages=("python3", "python-is-python3"),
    wheels="wheels.txt",
)
NODE = Image(
    name="seamark-node",
    recipe="node",
    parent=NODE_BASE,
    sources=(
        "harness/__init__.py",
        "harness/core",
        "harness/runtimes/__init__.py",
        "harness/runtimes/host",
        "clusters",
    ),
)
TOXIPROXY = Image(
    name="seamark-toxiproxy",
    recipe="toxiproxy",
    bases=(
        Base(argument="SERVER", published="ghcr.io/shopify/toxiproxy:2.5.0", debian=TOXIPROXY_SERVER),
        Base(argument="BASE", published="debian:bookworm-slim", debian=DEBIAN),
    ),
)
POSTGRES = Image(
    name="seamark-postgres",
    recipe="postgres",
    bases=(Base(argument="BASE", published="postgres:15-bookworm", debian=DEBIAN),),
    debian_packages=("postgresql-15",),
)
IMAGES: Mapping[str, Image] = {image.name: image for image in (NODE, TOXIPROXY, POSTGRES)}


def of_packages(packages: tuple[str, ...], folder: str, programs: tuple[Program, ...] = ()) -> Image:
    """The image of a server of those Debian packages and programs; the first gives it its name. It has `folder`."""
    return Image(
        name=f"seamark-{(*packages, *(program.name for program in programs))[0]}",
        recipe="program-server" if programs else "debian-server",
        bases=(Base(argument="BASE", published="debian:bookworm-slim", debian=DEBIAN),),
        packages=packages,
        folder=folder,
        programs=programs,
    )


def needs(image: Buildable, way: Way) -> tuple[tuple[str, str | Buildable], ...]:
    """The images needed first, each under its argument in the Dockerfile; a string is a published image."""
    if not isinstance(image, Image):
        return ()
    own = tuple(
        (base.argument, pinned(base.published) if way is Way.PUBLISHED else base.debian) for base in image.bases
    )
    return own if image.parent is None else (("BASE", image.parent), *own)


def published_references(image: Image) -> tuple[str, ...]:
    """The published images below this one, in its published variant."""
    above = () if image.parent is None else published_references(image.parent)
    return (*above, *(pinned(base.published) for base in image.bases))


def tag_of(image: Buildable, way: Way) -> str:
    """The image's tag, as "name:hash"."""
    return f"{image.name}:{content_of(image, way)[:16]}"


def content_of(image: Buildable, way: Way) -> str:
    """A hash of all inputs of the image. The variant counts only if it makes a difference."""
    parts = [f"{argument}={_name(needed, way)}".encode() for argument, needed in needs(image, way)]
    match image:
        case Image():
            parts += [repr((way.value, image.wheels)).encode(), repr(packages_of(image, way)).encode()]
            parts += [image.folder.encode()] if image.folder else []
            parts += [repr(image.programs).encode()] if image.programs else []
            parts += [part for path, content in files_of(image) for part in (path.encode(), content)]
        case Debootstrap() | GoProgram():
            parts.append(repr(image).encode())
        case _:
            assert_never(image)
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


def labels_of(image: Buildable, way: Way) -> dict[str, str]:
    """The labels of the image, which distinguish ours from foreign images of the same name."""
    return {IMAGE_LABEL: image.name, CONTENT_LABEL: content_of(image, way)}


def packages_of(image: Image, way: Way) -> tuple[str, ...]:
    """The Debian packages that the image needs beyond its base and its Dockerfile."""
    return (*image.packages, *(image.debian_packages if way is Way.DEBIAN else ()))


def files_of(image: Image) -> Iterator[tuple[str, bytes]]:
    """The files of the Dockerfile's folder: relative paths and contents, in order."""
    recipe = RECIPES / image.recipe
    for path in _files(recipe, "*"):
        yield path.relative_to(recipe).as_posix(), path.read_bytes()
    for source in image.sources:
        for path in _files(ROOT / source, "*.py"):
            yield f"sources/{path.relative_to(ROOT).as_posix()}", path.read_bytes()


def _files(place: Path, pattern: str) -> list[Path]:
    found = [place] if place.is_file() else place.rglob(pattern)
    return sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)


def _name(needed: str | Buildable, way: Way) -> str:
    return needed if isinstance(needed, str) else tag_of(needed, way)
