"""`seamark export`: a history in a format for other checkers and programs."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from harness.cli.output import standard_error
from harness.core.errors import ScenarioError
from harness.core.record import Complete, Evidence, Fault, Footer, Header, Invoke, Record
from harness.record.formats.edn.exchange import write_edn_history
from harness.record.formats.jsonl import write_jsonl
from harness.record.formats.load import Loaded, format_of, load
from harness.record.formats.parquet.parquet import records_of
from harness.record.journal import read_journal
from harness.record.ownership import temporary_folder
from harness.record.store import JOURNAL, RUN_FILE, is_run, or_latest
from harness.report.screen import say


def export(
    path: Annotated[
        Path, typer.Argument(help="A run's directory, latest, or a history of any format that check reads.")
    ],
    file_format: Annotated[
        Literal["edn", "jsonl"],
        typer.Option("--format", help="edn: for Elle and Knossos. jsonl: all that was recorded."),
    ] = "edn",
    output: Annotated[Path | None, typer.Option(help="The file to write. Default: standard output.")] = None,
) -> int:
    """Write a history in another format.

    EDN has operations only: records that it leaves out are counted on standard error.
    """
    if output is not None and output.exists():
        raise ScenarioError(
            f"{output}: it already exists, and is not overwritten; choose another file with --output, or remove it"
        )
    path = or_latest(path)
    with temporary_folder("export") as folder:
        # Errors in the history are reported before anything is written.
        loaded = load(path, folder, is_hashed=False)
        counted = _Counted(_records(path, loaded), is_edn=file_format == "edn")
        write = write_edn_history if counted.is_edn else write_jsonl
        if output is None:
            written = folder / "written"
            write(counted, written)  # The whole text, before the first line is printed.
            with written.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
        else:
            _write_whole(write, counted, output)
    notes = list(loaded.notes)
    if counted.left_out:
        others = f"{counted.left_out:,} records that are not operations (events, faults)"
        notes.append(f"skipped {others}; --format jsonl keeps them")
    for note in notes:
        say(standard_error(), f"seamark: {note}", is_whole=True)
    return 0


class _Counted:
    """The records to export, with a count of those that EDN cannot represent."""

    def __init__(self, records: Iterable[Record], *, is_edn: bool) -> None:
        self._records, self.is_edn = records, is_edn
        self.left_out = 0

    def __iter__(self) -> Iterator[Evidence]:
        for record in self._records:
            if isinstance(record, Header | Footer):
                continue
            if self.is_edn and not isinstance(record, Invoke | Complete):
                self.left_out += 1
                continue
            yield record


def _records(path: Path, loaded: Loaded) -> Iterable[Record]:
    """The records in file order, one at a time; those of Parquet files are sorted first."""
    folder = path if path.is_dir() else path.parent
    if path.is_dir() or path.name == RUN_FILE or path.suffix == ".parquet":
        journal = folder / JOURNAL
        return read_journal(journal) if is_run(folder) and journal.is_file() else records_of(loaded.history)
    records = format_of(path).read(path)
    # The loader has left out the faults of a foreign nemesis, and counted them.
    return (each for each in records if not isinstance(each, Fault)) if loaded.is_foreign else records


def _write_whole(write: Callable[[Iterable[Evidence], Path], None], records: Iterable[Evidence], output: Path) -> None:
    """Write a file that appears whole or not at all."""
    try:
        with temporary_folder("export", output.parent) as folder:  # No link can be placed at a random name.
            write(records, folder / "written")
            (folder / "written").replace(output)
    except OSError as error:
        raise ScenarioError(f"{output}: cannot be written ({error.strerror}); choose another with --output") from None
