"""`seamark new`: writes a file with your own system, which runs unchanged."""

import keyword
import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import harness.cli.texts.template
from harness.core.command import seamark
from harness.core.errors import ScenarioError
from harness.report.screen import plain
from harness.scenario.consent import cluster_names


def new(
    name: Annotated[str, typer.Argument(help="The system's name; the file becomes NAME.py, in this folder.")],
) -> int:
    """Write a file that puts a server under test, with comments on what to change. It runs unchanged."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ScenarioError(
            f"{name!r} is no name for a file and its class: begin with a small letter; then small letters, digits and _"
        )
    if name in cluster_names():
        raise ScenarioError(f"{name!r} is installed already (seamark clusters {name}): choose another name")
    path = Path(f"{name}.py")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(named(name))
    except FileExistsError:
        raise ScenarioError(f"{path}: already exists; not overwritten: choose another name") from None
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be written ({error.strerror})") from None
    console = Console(highlight=False)
    console.print(plain(f"wrote {path}: a system under test, which is Redis until you change it"), soft_wrap=True)
    place = f"{path}:{name}"
    for label, command in (
        ("run", seamark("run", "--cluster", place, "--runtime", "docker", "--time", 30)),
        ("look", seamark("clusters", place)),
    ):
        console.print(plain(f"  {label:<8}{command}"), soft_wrap=True)
    return 0


def named(name: str) -> str:
    """The template with that name filled in."""
    text = Path(harness.cli.texts.template.__file__).read_text(encoding="utf-8")
    text = re.sub(r"\byours\b", name, re.sub(r"  # noqa: .*", "", text))
    return text.replace("YOURS-", f"{name.upper().replace('_', '-')}-")
