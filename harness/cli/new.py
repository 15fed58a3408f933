"""`seamark new`: writes a file with your own system, which runs unchanged."""

import keyword
import re
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console

import harness.cli.texts.lesson
import harness.cli.texts.template
from harness.core.command import seamark
from harness.core.errors import ScenarioError
from harness.report.screen import say, suggest
from harness.scenario.consent import cluster_names


def new(
    name: Annotated[str, typer.Argument(help="The system's name; the file becomes NAME.py, in this folder.")],
    tutorial: Annotated[
        bool, typer.Option("--tutorial", help="Write a toy store with a bug: a lesson of five minutes, without Docker.")
    ] = False,
) -> int:
    """Write a file that puts a server under test, with comments on what to change. It runs unchanged."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ScenarioError(f"{name!r} is not a valid name: use small letters, digits and _, and begin with a letter")
    if name in cluster_names():
        raise ScenarioError(f"{name!r} is installed already (seamark clusters {name}): choose another name")
    path = Path(f"{name}.py")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(lesson(name) if tutorial else template(name))
    except FileExistsError:
        raise ScenarioError(f"{path}: already exists; not overwritten: choose another name") from None
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be written ({error.strerror})") from None
    place = f"{path}:{name}"
    if tutorial:
        about = f"wrote {path}: a toy store with one bug; its first lines are the lesson"
        run = seamark("run", "--cluster", place, "--time", 10, "--seed", 1, "--count", 20, "--until-found")
    else:
        about = f"wrote {path}: a system under test, which is Redis until you change it"
        run = seamark("run", "--cluster", place, "--runtime", "docker", "--time", 30)
    console = Console(highlight=False)
    say(console, about)
    for label, command in (("run", run), ("look", seamark("clusters", place))):
        suggest(console, label, command)
    return 0


def template(name: str) -> str:
    """The file of a system with that name, which is Redis at first."""
    return _named(harness.cli.texts.template, name)


def lesson(name: str) -> str:
    """The file of a toy store with that name and a bug to mend."""
    return _named(harness.cli.texts.lesson, name)


def _named(source: ModuleType, name: str) -> str:
    """The source of the module, with that name filled in."""
    text = Path(str(source.__file__)).read_text(encoding="utf-8")
    text = re.sub(r"\byours\b", name, re.sub(r"  # noqa: .*", "", text))
    return text.replace("YOURS-", f"{name.upper().replace('_', '-')}-")
