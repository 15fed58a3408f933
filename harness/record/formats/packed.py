"""Files that gzip or zstd compressed, read as what they hold, within limits against bombs."""

import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final, cast

import pyarrow as pa

from harness.core.errors import HistoryError

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_GZIP: Final = b"\x1f\x8b"
_ZEROS: Final = bytes(10)  # More than any content ends with: that of nothing ends with nine.
LEAST: Final = 256 << 20  # Bytes that may come from any file.
RATIO: Final = 1_000  # Bytes that may come from each byte of a file.
_BUFFER: Final = 1 << 16  # Bytes read at once: they stay in the processor's cache until they are used.


def is_packed(path: Path) -> bool:
    """True if gzip or zstd compressed that file."""
    return _opener(path) is not None


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The content of a file, unpacked if need be. Raises OSError if it cannot be opened.

    Raises HistoryError with the file where it is damaged, or unpacks to more than the limit.
    """
    opener = _opener(path)
    if opener is None:
        with path.open("rb") as file:
            yield file
        return
    packed, damage = opener(path)
    try:
        with packed as inner:
            yield cast("IO[bytes]", _Limited(path, inner))
    except (EOFError, OSError, damage) as error:
        if isinstance(error, OSError) and error.errno is not None:  # Arrow and gzip name no error of the system.
            raise
        raise HistoryError(f"{path}: its compressed content is damaged or ends too early ({error})") from None


def unpack(path: Path, into: Path) -> Path:
    """Write what a compressed file holds into that folder, under its name without the last suffix. Returns its path."""
    into.mkdir(parents=True, exist_ok=True)
    plain = into / (path.stem or path.name)
    with opened(path) as packed, plain.open("wb") as file:
        shutil.copyfileobj(packed, file, _BUFFER)
    return plain


def _opener(path: Path) -> Callable[[Path], tuple[io.BufferedIOBase, type[Exception]]] | None:
    with path.open("rb") as file:
        head = file.read(len(_ZSTD))
    return next((each for begin, each in _OPENERS.items() if head.startswith(begin)), None)


def _gzip(path: Path) -> tuple[io.BufferedIOBase, type[Exception]]:
    """The content, in a third of zlib's time, and the error of a damaged file."""
    from isal import igzip, igzip_lib  # noqa: PLC0415  Most files are not compressed.

    with path.open("rb") as plain:
        plain.seek(-min(len(_ZEROS), path.stat().st_size), io.SEEK_END)
        if plain.read() == _ZEROS:  # isal skips them. A crash may have left them in the place of further members.
            raise HistoryError(f"{path}: its compressed content is damaged or ends too early (zeros follow it)")
    file = igzip.IGzipFile(path)  # type: ignore[no-untyped-call]  # isal does not declare its types.
    return file, cast("type[Exception]", igzip_lib.IsalError)  # Declared as an exception, not as a type of them.


def _zstd(path: Path) -> tuple[io.BufferedIOBase, type[Exception]]:
    return io.BufferedReader(pa.input_stream(str(path), compression="zstd", buffer_size=0), _BUFFER), pa.ArrowException


_OPENERS: Final = MappingProxyType({_GZIP: _gzip, _ZSTD: _zstd})  # The beginnings of files, and their openers.


class _Limited(io.BufferedIOBase):
    """The content of a compressed file, up to the limit. It passes blocks on without a copy."""

    def __init__(self, path: Path, inner: io.BufferedIOBase) -> None:
        self._path, self._inner = path, inner
        self._left = max(LEAST, RATIO * path.stat().st_size)

    def read(self, size: int | None = -1, /) -> bytes:
        return self._counted(self._inner.read(size))

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._counted(self._inner.readline(size))

    def _counted(self, content: bytes) -> bytes:
        self._left -= len(content)
        if self._left < 0:
            raise HistoryError(
                f"{self._path}: it unpacks to more than {RATIO:,} times its size, the limit: unpack it yourself"
            )
        return content
