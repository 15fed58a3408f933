"""Opens the documents that a command reads: a regular file, through no link, and bounded.

What a folder or a command line names may come from anywhere: a pipe would wait for ever, a device or a sparse file
would fill the memory, and a link could lead to any file of this machine. So whatever reads a document opens it here.
"""

import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from harness.core.errors import HistoryError, ScenarioError, SeamarkError

DOCUMENT_MAX: Final = 64 << 20  # The most bytes of a document that is read whole.
WRITTEN_MAX: Final = 1 << 20  # The most bytes of one that a person writes: a parser of TOML takes seconds for these.
VALUES_MAX: Final = 2_000_000  # The most values in a document.
LINE_MAX: Final = 16 << 20  # The most bytes of a line.
NOT_PLAIN: Final = "is a link or no file, and only plain files are read: copy what it is"


class Versioned(Protocol):
    """A document with the version of its schema."""

    @property
    def schema(self) -> int: ...


D = TypeVar("D", bound=Versioned)
V = TypeVar("V")


def opened(path: Path, raising: type[SeamarkError] = HistoryError) -> BufferedReader:
    """The file, opened for reading. Raises `raising` if it is a link, no regular file, or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # To open a pipe waits for a writer.
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise raising(f"{path}: {NOT_PLAIN}") from None
        raise raising(f"{path}: cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise raising(f"{path}: {NOT_PLAIN}")
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, raising: type[SeamarkError] = HistoryError, most: int = DOCUMENT_MAX) -> bytes:
    """The bytes of a document, at most `most`. Raises `raising` as `opened` does, or if it is too large."""
    try:
        with opened(path, raising) as file:
            size = os.fstat(file.fileno()).st_size
            content = b"" if size > most else file.read(most + 1)
    except OSError as error:
        raise raising(f"{path}: cannot be read ({error.strerror})") from None
    if (size := max(size, len(content))) > most:
        raise raising(f"{path}: has {size:,} bytes, the limit is {most:,}")
    if (count := values_in(content)) > VALUES_MAX:
        raise raising(f"{path}: has some {count:,} values, the limit is {VALUES_MAX:,}")
    return content


def values_in(content: bytes) -> int:
    """About how many values JSON or TOML holds: an empty list takes three bytes in a file, and seventy in memory."""
    return sum(map(content.count, (b",", b"[", b"{")))


def decoded(content: bytes | msgspec.Raw, form: type[V]) -> V:
    """The value in JSON. Raises ValueError, with the field at fault, if it is not of that form."""
    try:
        return msgspec.json.decode(content, type=form)
    except (msgspec.MsgspecError, SeamarkError, RecursionError) as error:  # SeamarkError: a value refused itself.
        raise ValueError(str(error)) from None


def read_document(path: Path, form: type[D], kind: str, newest: int, *, again: str = "") -> D:
    """The JSON document at `path`, whose schema must be `newest` or older.

    Raises HistoryError that names the file, says that it is not `kind` ("a report"), and how to make it `again`.
    """
    try:
        document = decoded(read_plain(path), form)
    except ValueError as error:
        raise HistoryError(f"{path}: not {kind} ({error}){again}") from None
    if document.schema > newest:
        raise HistoryError(f"{path}: has schema {document.schema}, this Seamark reads up to {newest}: upgrade it")
    return document


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file that a person wrote. Raises ScenarioError if it cannot be read, or is no TOML."""
    return tables_in(read_plain(path, ScenarioError, WRITTEN_MAX), path)


def tables_in(content: bytes, path: Path) -> dict[str, Any]:
    """The tables in the content of the TOML file `path`. Raises ScenarioError if it is none."""
    if len(content) > WRITTEN_MAX:
        raise ScenarioError(f"{path}: has {len(content):,} bytes, the limit is {WRITTEN_MAX:,}")
    import tomllib  # noqa: PLC0415  Most commands read no TOML.

    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # A ValueError as well: a number of thousands of digits.
        raise ScenarioError(f"{path}: not valid TOML ({' '.join(str(error).split())})") from None


def whole_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file that have an end, one after another; a last one without is what a killed process leaves.

    Raises HistoryError as `opened` does, or if a line is too long or has too many values.
    """
    number = 0
    try:
        with opened(path) as file:
            while (line := file.readline(LINE_MAX + 1)).endswith(b"\n"):
                number += 1
                if values_in(line) > VALUES_MAX:
                    raise HistoryError(f"{path}:{number}: has more than {VALUES_MAX:,} values, the limit")
                yield line
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    if len(line) > LINE_MAX:
        raise HistoryError(f"{path}:{number + 1}: has more than {LINE_MAX:,} bytes, the limit of a line")
