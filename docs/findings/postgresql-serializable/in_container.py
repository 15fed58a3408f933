"""Runs repeat.py against a release of Debian's PostgreSQL, in a container that holds the server, gdb and psycopg.

    .venv/bin/python docs/findings/postgresql-serializable/in_container.py --release 15

Options that it does not know go to repeat.py, whose output and exit code it hands on; 4 if there is not a container.
The container has no network, and of root's capabilities those to become the server's user and to attach a debugger
to its processes, whose memory is a file of that user.
"""

import argparse
import io
import os
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import docker
from docker.errors import DockerException

from harness.core.errors import DeployError
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.engine.labels import labels_for
from harness.runtimes.containers.images.catalogue import Base, Debootstrap, Image, Way, of_packages, tag_of
from harness.runtimes.containers.images.images import ensure, is_there

SCRIPT = Path(__file__).with_name("repeat.py")
DEBIAN = {"15": "bookworm", "17": "trixie"}  # The suite that has this release of PostgreSQL.
CAPABILITIES = ("DAC_OVERRIDE", "SETGID", "SETUID", "SYS_PTRACE")
FOLDER = "/finding"
HARNESS_ERROR = 4


def image_for(release: str) -> Image:
    """The image with that release, in both variants of the catalogue."""
    image = of_packages((f"postgresql-{release}", "gdb", "python3-psycopg"), FOLDER)
    suite = DEBIAN[release]
    # A base of that suite; gdb comes from the same one, so that it understands the server's file.
    base = Base(argument="BASE", published=f"debian:{suite}-slim", debian=Debootstrap(release=suite))
    return replace(image, bases=(base,))


def packed(path: Path) -> bytes:
    """A tar file with that file: copied rather than mounted, as the engine may be on another machine."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(path, path.name)
    return archive.getvalue()


def repeated(engine: docker.DockerClient, release: str, arguments: list[str]) -> int:
    """The exit code of repeat.py in a new container, which is removed. Its output is printed as it comes."""
    image = image_for(release)
    if not any(is_there(engine, tag_of(image, way)) for way in Way):
        print(f"building {image.name}, once: it takes a minute or two", file=sys.stderr)
    tag = ensure(engine, image)
    command = ["python3", f"{FOLDER}/{SCRIPT.name}", "--bin", f"/usr/lib/postgresql/{release}/bin", *arguments]
    container = engine.containers.create(
        tag,
        command,
        environment={"PYTHONUNBUFFERED": "1"},
        cap_drop=["ALL"],
        cap_add=list(CAPABILITIES),
        security_opt=["no-new-privileges"],
        network_mode="none",
        mem_limit="512m",
        pids_limit=256,
        init=True,
        labels=labels_for(f"finding-{release}"),
    )
    try:
        container.put_archive(FOLDER, packed(SCRIPT))
        container.start()
        for part in container.logs(stream=True, follow=True):
            sys.stdout.write(part.decode(errors="replace"))
            sys.stdout.flush()
        return int(container.wait()["StatusCode"])
    finally:
        container.remove(force=True)


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--release", choices=sorted(DEBIAN), default="15", help="PostgreSQL's major version (15)")
    options, arguments = parser.parse_known_args()
    try:
        return repeated(connect(), options.release, arguments)
    except (DeployError, DockerException) as error:
        print(f"in_container.py: {' '.join(str(error).split())}", file=sys.stderr)
        return HARNESS_ERROR
    except BrokenPipeError:  # Whoever read this has gone; the interpreter would complain when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return HARNESS_ERROR


if __name__ == "__main__":
    sys.exit(main())
