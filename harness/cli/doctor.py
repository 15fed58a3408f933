"""`seamark doctor`: checks that this machine has everything a run needs.

A missing engine for containers is only noted.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from checkers.engine.spark_classes import java_program
from harness.cli.commands import COMMANDS, function_of
from harness.core.errors import DeployError
from harness.report.screen import plain, say
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.engine.sweeper import folders_left_behind, left_behind
from harness.runtimes.containers.images.catalogue import IMAGES, Way, tag_of
from harness.runtimes.containers.images.images import is_there
from harness.scenario.consent import cluster_names
from harness.scenario.installation import shadowed_package

JAVA_MIN = 17


def doctor(
    store: Annotated[Path, typer.Option(help="The folder in which runs are kept.")] = Path("store"),
) -> int:
    """Check this machine: one line for each requirement, present or missing. Exits 4 if one is missing.

    A note is not a failure: a run in the simulation needs no containers.
    """
    console = Console(highlight=False)
    is_fit = True
    for name, is_good, text in _findings(store):
        say(console, plain(text, "" if is_good else "red"), f"{'ok' if is_good else 'MISSING':<8} {name:<10} ")
        is_fit &= is_good
    for name, is_good, text in _containers():
        say(console, plain(text, "" if is_good else "yellow"), f"{'ok' if is_good else 'note':<8} {name:<10} ")
    return 0 if is_fit else 4


def _findings(store: Path) -> Iterator[tuple[str, bool, str]]:
    python = sys.version_info[:2]
    yield "python", (3, 11) <= python <= (3, 13), f"{sys.version.split()[0]} (3.11 to 3.13 is needed)"
    yield ("packages", *_packages())
    shadow = shadowed_package()
    yield "names", shadow is None, shadow or "seamark, harness, nemesis, checkers and clusters are ours"
    yield ("java", *_java())
    yield ("localhost", *_localhost())
    yield "clusters", bool(cluster_names()), ", ".join(cluster_names()) or "none: reinstall seamark"
    folder = next(path for path in (store.absolute(), *store.absolute().parents) if path.exists())
    is_writable, free = os.access(folder, os.W_OK), f"{shutil.disk_usage(folder).free >> 30} GiB free"
    place = f"{store} in {folder}, {free}" if is_writable else f"{folder} cannot be written: use another --store"
    yield "store", is_writable, place


def _packages() -> tuple[bool, str]:
    """Whether every command can be loaded with the installed packages."""
    names = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "pyarrow", "numpy", "networkx"))
    for command in COMMANDS:
        try:
            function_of(command)
        except Exception as error:  # noqa: BLE001  Whatever it is, the command cannot be used.
            return False, f"{names}: seamark {command} cannot be loaded ({error!r}): make setup installs what it needs"
    return True, names


def _java() -> tuple[bool, str]:
    java = java_program()
    remedy = f"Spark needs Java {JAVA_MIN} or newer: apt-get install openjdk-17-jre-headless, or use --engine local"
    if java is None:
        return False, remedy
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603  Found above.
    match = re.search(r'version "(\d+)', shown)
    if match is None or int(match[1]) < JAVA_MIN:
        return False, f"{java} is too old or does not start. {remedy}"
    return True, f"{match[1]} at {java}"


def _localhost() -> tuple[bool, str]:
    try:
        return True, socket.gethostbyname("localhost")
    except OSError:
        return False, "Spark's processes find each other by that name: add '127.0.0.1 localhost' to /etc/hosts"


def _containers() -> Iterator[tuple[str, bool, str]]:
    """The requirements of runs in containers, and the leftovers of earlier ones."""
    try:
        engine = connect()
    except DeployError as error:
        yield "docker", False, f"{error} (only seamark run --runtime docker needs it)"
        return
    shown = engine.version()
    yield "docker", True, f"{shown['Version']} ({shown['Os']}/{shown['Arch']})"
    missing = [name for name, image in IMAGES.items() if not any(is_there(engine, tag_of(image, way)) for way in Way)]
    built = ", ".join(name for name in IMAGES if name not in missing)
    remedy = f"not built yet: {', '.join(missing)}; the first run that needs them builds them, or seamark images does"
    yield "images", not missing, (f"{built}; {remedy}" if built else remedy) if missing else built
    counts = Counter(each.kind for each in left_behind(engine)) + Counter(folder=len(folders_left_behind()))
    left = ", ".join(f"{kind} {count}" for kind, count in counts.items())
    yield "left over", not left, f"of runs that died: {left}; seamark clean removes it" if left else "nothing"
    engine.close()
