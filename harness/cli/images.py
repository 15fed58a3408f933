"""`seamark images`: builds the images for containers, and prints the time for each."""

from typing import Annotated

import typer
from rich.console import Console

from harness.core.errors import ScenarioError, known
from harness.report.screen import plain
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.images.catalogue import IMAGES, Way
from harness.runtimes.containers.images.images import Ready, ensure, way_of


def images(
    names: Annotated[list[str] | None, typer.Argument(help="Images to build. Default: all.")] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Build on published images even if no registry answers.")
    ] = False,
    debian: Annotated[
        bool, typer.Option("--debian", help="Build on Debian's packages and Go modules, without a registry of images.")
    ] = False,
) -> int:
    """Build the images for containers; an existing image is left unchanged."""
    if published and debian:
        raise ScenarioError("--published and --debian are two ways to build an image: choose one, or none")
    wanted = [IMAGES[known(name, tuple(IMAGES), "image")] for name in names or IMAGES]
    forced = Way.PUBLISHED if published else Way.DEBIAN if debian else None
    console = Console(highlight=False)
    engine = connect()
    ready_by_tag: dict[str, Ready] = {}

    def tell(ready: Ready) -> None:
        if ready.tag not in ready_by_tag:
            took = f"built in {ready.seconds:.1f} s" if ready.is_new else "already built"
            console.print(plain(f"{ready.tag:<44} {ready.way.value:<10} {took}"), soft_wrap=True)
            for base in ready.bases:
                console.print(plain(f"  on {base}"), soft_wrap=True)
        ready_by_tag[ready.tag] = ready

    for image in wanted:
        ensure(engine, image, way=forced or way_of(engine, image), tell=tell)
    built_s = sum(ready.seconds for ready in ready_by_tag.values())
    console.print(plain(f"ready: {len(ready_by_tag)}; building took {built_s:.1f} s"))
    return 0
