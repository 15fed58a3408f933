"""`seamark clean`: removes the leftovers of dead harnesses: processes, files and what is in the engine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.record.formats import kept
from harness.record.ownership import remove_left_behind
from harness.record.processes import end_left_behind
from harness.record.store import folders_of
from harness.report.screen import plain
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.engine.sweeper import Swept, sweep, sweep_folders
from harness.runtimes.containers.images.images import remove_images


def clean(
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Include leftovers that other machines made in the same engine, of live harnesses as well."
        ),
    ] = False,
    images: Annotated[bool, typer.Option("--images", help="Include the images that no container uses.")] = False,
    store: Annotated[Path, typer.Option(help="The folder in which runs are kept.")] = Path("store"),
) -> int:
    """Remove processes, containers, networks, volumes and temporary files of dead runs. Live runs keep theirs."""
    console = Console(highlight=False)

    def show(swept: tuple[Swept, ...]) -> int:
        for each in swept:
            of_run = f"  of run {each.run}" if each.run else ""
            console.print(plain(f"removed {each.kind:<10} {each.name}{of_run}"), soft_wrap=True)
        return len(swept)

    # Processes first: they use the rest. Then files, which can be removed without an engine.
    removed = show(
        tuple(Swept(kind="process", name=f"{each.pid}  {each.command}", run=None) for each in end_left_behind())
    )
    places = (*folders_of(store), kept.place())
    in_places = (path for folder in places for path in remove_left_behind(folder))
    removed += show((*sweep_folders(), *(Swept(kind="file", name=str(path), run=None) for path in in_places)))
    engine = connect()
    removed += show(sweep(engine, everything=everything))
    if images:
        removed += show(tuple(Swept(kind="image", name=tag, run=None) for tag in remove_images(engine)))
    console.print(plain(f"{removed} things removed" if removed else "no leftovers found"))
    return 0
