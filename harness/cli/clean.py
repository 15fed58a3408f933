"""`seamark clean`: removes what harnesses that died left behind, here and in the engine."""

from typing import Annotated

import typer
from rich.console import Console

from harness.containers.engine import connect
from harness.containers.images import remove_images
from harness.containers.sweeper import Swept, sweep, sweep_folders
from harness.report.screen import plain


def clean(
    everything: Annotated[
        bool, typer.Option("--all", help="Also what other machines made in the same engine, whether they live or not.")
    ] = False,
    images: Annotated[bool, typer.Option("--images", help="Also the images that no container uses.")] = False,
) -> int:
    """Remove containers, networks, volumes and temporary folders of runs that have died. Runs that live keep theirs."""
    console = Console(highlight=False)

    def show(swept: tuple[Swept, ...]) -> int:
        for each in swept:
            of_run = f"  of run {each.run}" if each.run else ""
            console.print(plain(f"removed {each.kind:<10} {each.name}{of_run}"), soft_wrap=True)
        return len(swept)

    removed = show(sweep_folders())  # First: they can be removed without an engine.
    engine = connect()
    removed += show(sweep(engine, everything=everything))
    if images:
        removed += show(tuple(Swept(kind="image", name=tag, run=None) for tag in remove_images(engine)))
    console.print(plain(f"{removed} things removed" if removed else "nothing was left behind"))
    return 0
