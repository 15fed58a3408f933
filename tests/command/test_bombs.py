"""Parquet files, small on disk and huge in memory: `check` and `export` refuse them in a line, and in little memory.

What is refused is told by headers, or by texts that are read as dictionaries, so none of it depends on the machine.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.command.conftest import Seamark
from tests.worlds import bombs

MEMORY_MB: Final = 300
EXPANDED: Final = "the limit is 256 MiB, or 1,000 bytes for each of the file"
TEXT: Final = "the limit is 16 MiB for one text"
ROWS: Final = "the limit is 4,000,000 rows, or 8 for each byte of the file"
REPEATED: Final = [
    *[("ops", "f"), ("ops", "value"), ("mops", "table"), ("events", "subscriber"), ("faults", "note")],
    *[("probes", "node"), ("states", "value"), ("marks", "note"), ("names", "json")],
]


def refusal(tmp_path: Path, *arguments: str | Path) -> str:
    """What a process of its own says on standard error; it exits with 4, and has held less than the limit."""
    peak = tmp_path / "peak"
    command = [sys.executable, "-m", "tests.peak", str(peak), *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (ended.returncode, ended.stdout) == (4, ""), ended.stderr
    assert int(peak.read_text(encoding="ascii")) < MEMORY_MB
    assert ended.stderr.count("\n") == 1
    return ended.stderr


@pytest.mark.parametrize(
    ("bomb", "limit"),
    [
        (lambda folder: bombs.texts(folder, count=3, mib=100), TEXT),
        (lambda folder: bombs.texts(folder, count=1, mib=250), TEXT),
        (lambda folder: bombs.rows(folder, "names", 20 << 20), ROWS),
    ],
    ids=["three texts of 100 MB", "one text of 250 MB", "20 million rows"],
)
def test_the_bombs_that_were_reported_are_refused(tmp_path: Path, bomb: Callable[[Path], Path], limit: str) -> None:
    folder = bomb(tmp_path / "history")
    assert (folder / "names.parquet").stat().st_size < 1 << 20
    for arguments in (("check", folder, "--engine", "local"), ("export", folder)):
        line = refusal(tmp_path, *arguments)
        assert line.startswith(f"seamark: {folder / 'names.parquet'}: ")
        assert limit in line


@pytest.mark.parametrize(("name", "column"), REPEATED)
def test_a_text_that_is_written_once_and_repeated_is_refused(
    seamark: Seamark, tmp_path: Path, name: str, column: str
) -> None:
    folder = bombs.repeated(tmp_path / "history", name, column, rows=100_000, mib=15)
    outcome = seamark("check", folder, "--engine", "local")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.line.startswith(f"seamark: {folder / name}.parquet: the values up to row group 0, column '{column}'")
    assert EXPANDED in outcome.line


@pytest.mark.parametrize("name", bombs.TABLES)
def test_rows_that_cost_no_byte_are_refused_in_every_table(seamark: Seamark, tmp_path: Path, name: str) -> None:
    folder = bombs.rows(tmp_path / "history", name, 8 << 20)
    outcome = seamark("check", folder, "--engine", "local")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.line.startswith(f"seamark: {folder / name}.parquet: it declares 8,388,608 rows in ")
    assert ROWS in outcome.line


def test_a_long_list_that_costs_no_byte_is_refused(tmp_path: Path) -> None:
    folder = bombs.lists(tmp_path / "history", elements=50_000_000)
    line = refusal(tmp_path, "check", folder, "--engine", "local")
    assert line.startswith(f"seamark: {folder / 'mops.parquet'}: the values up to row group 0, column 'read'")
    assert EXPANDED in line


@pytest.mark.parametrize(
    ("rows", "mib", "limit"),
    [
        (100_000, 15, "the limit is 256 MiB, or 10,000 bytes for each of the file"),
        (3, 100, "the limit is 64 MiB for one text"),
        (15_000_000, 0, ROWS),
    ],
)
def test_a_bomb_in_a_stream_of_somebody_is_refused(tmp_path: Path, rows: int, mib: int, limit: str) -> None:
    file, mapping = bombs.stream(tmp_path / "changes.parquet", rows=rows, mib=mib), tmp_path / "changes.toml"
    mapping.write_text(bombs.MAPPING, encoding="utf-8")
    line = refusal(tmp_path, "check", file, "--stream", mapping, "--engine", "local")
    assert line.startswith(f"seamark: {file}: ")
    assert limit in line
