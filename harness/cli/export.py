"""`seamark export`: a history for other checkers to judge, or for other programs to read."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from harness.cli.output import standard_error
from harness.core.errors import ScenarioError
from harness.core.record import Complete, Evidence, Invoke
from harness.formats.exchange import write_edn_history
from harness.formats.jsonl import write_jsonl
from harness.formats.load import load
from harness.formats.parquet import records_of
from harness.report.screen import plain


def export(
    path: Annotated[Path, typer.Argument(help="A run's directory, or a history in any format that check reads.")],
    file_format: Annotated[
        Literal["edn", "jsonl"],
        typer.Option("--format", help="edn: for Elle and Knossos. jsonl: all that was recorded."),
    ] = "edn",
    output: Annotated[Path | None, typer.Option(help="The file to write. Default: standard output.")] = None,
) -> int:
    """Write a history in another format. EDN has operations only: what it leaves out is counted on standard error."""
    if output is not None and output.exists():
        raise ScenarioError(f"{output}: it is there already; choose another file with --output, or remove it")
    with tempfile.TemporaryDirectory(prefix="seamark-export-") as folder:
        loaded = load(path, Path(folder))
        notes = list(loaded.notes)
        write = write_jsonl if file_format == "jsonl" else _edn_writer(notes)
        if output is None:
            written = Path(folder) / "written"
            write(records_of(loaded.history), written)  # All of it, before the first line goes out.
            with written.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
        else:
            _write_whole(write, records_of(loaded.history), output)
    for note in notes:
        standard_error().print(plain(f"seamark: {note}"), soft_wrap=True)
    return 0


def _edn_writer(notes: list[str]) -> Callable[[Iterable[Evidence], Path], None]:
    """Writes EDN, and notes what had no place there."""

    def write(records: Iterable[Evidence], path: Path) -> None:
        every = list(records)
        operations = [record for record in every if isinstance(record, Invoke | Complete)]
        write_edn_history(operations, path)
        if len(operations) < len(every):
            left_out = len(every) - len(operations)
            notes.append(f"{left_out:,} records that are no operations are left out: --format jsonl has them")

    return write


def _write_whole(write: Callable[[Iterable[Evidence], Path], None], records: Iterable[Evidence], output: Path) -> None:
    """Write a file that appears whole or not at all."""
    temporary = output.with_name(f".{output.name}.tmp")
    try:
        write(records, temporary)
        temporary.replace(output)
    except OSError as error:
        raise ScenarioError(f"{output}: cannot be written ({error.strerror}); choose another with --output") from None
    finally:
        temporary.unlink(missing_ok=True)
