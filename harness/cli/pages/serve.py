"""`seamark serve`: the store in the browser."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.record.store import STORE
from harness.report.screen import plain


def serve(
    store: Annotated[Path, typer.Option(help="The folder in which runs are kept.")] = STORE,
    host: Annotated[
        str, typer.Option(help="The address to listen at. Others can reach all but 127.0.0.1 and ::1.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8137,
    token: Annotated[
        str | None, typer.Option(envvar="SEAMARK_TOKEN", help="Access token for browsers. Default: drawn and printed.")
    ] = None,
) -> int:
    """Show the store in a browser, until Ctrl-C: runs, what they found, two side by side, one while it runs.

    Open the printed address. Nothing in the store is changed.
    """
    from harness.serve.server import serve as serve_store  # noqa: PLC0415  Other commands do not wait for a web server.

    console = Console(highlight=False)
    serve_store(store, host, port, token, lambda line: console.print(plain(line), soft_wrap=True))
    return 0
