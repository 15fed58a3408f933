"""Bit rot in the data of a stopped container: the file that is chosen, and what becomes of it.

The files are read and written through the engine's archives, so neither root nor an engine on this machine is needed.
Pages of zeros are no data: servers reserve room with them, and a change there would most often change nothing.
"""

import io
import tarfile
import tempfile
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from docker.models.containers import Container

from harness.core.errors import DeployError

_PAGE: Final = 4096
_PLACES: Final = 1000
_ZEROS: Final = bytes(_PAGE)


class Rotten(NamedTuple):
    """A changed file: its path in the container, and the change in words."""

    path: str
    told: str


def rotted(content: bytes, at: int, how: str) -> bytes:
    """The content with the lowest bit of the byte at `at` flipped, or without what begins there."""
    if how == "truncate":
        return content[:at]
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def chosen(sizes: list[list[int]], place: int) -> tuple[int, int]:
    """The file, and its page, `place` thousandths of the way through the pages with data that each file has."""
    pages = [(number, page) for number, of_file in enumerate(sizes) for page in of_file]
    if not pages:
        raise DeployError("there is no data that could rot")
    return pages[place * len(pages) // _PLACES]


def pages_of(content: bytes) -> list[int]:
    """The pages of a file that are not zeros alone."""
    starts = range(0, len(content), _PAGE)
    return [n for n, start in enumerate(starts) if content[start : start + _PAGE] != _ZEROS[: len(content) - start]]


def rot(container: Container, folder: str, *, how: str, place: int) -> Rotten:
    """Change one file under that folder of a container that does not run; the file is read back. Raises DeployError."""
    with tempfile.TemporaryFile() as spool:
        for part in container.get_archive(folder)[0]:
            spool.write(part)
        spool.seek(0)
        with tarfile.open(fileobj=spool) as tar:
            files = [each for each in sorted(tar.getmembers(), key=lambda each: each.name) if each.isfile()]
            contents = [_content(tar, each) for each in files]
    number, page = chosen([pages_of(content) for content in contents], place)
    entry, content = files[number], contents[number]
    at = min(page * _PAGE + _PAGE // 2, len(content) - 1)
    changed = rotted(content, at, how)
    path = PurePosixPath(folder).parent / entry.name
    _put(container, path, entry, changed)
    if _got(container, path) != changed:
        raise DeployError(f"{path} does not show the change")
    word = (
        f"the bit at byte {at} is flipped" if how == "flip" else f"{len(content) - at} of {len(content)} bytes are gone"
    )
    return Rotten(str(path), word)


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(entry)
    return b"" if file is None else file.read()


def _put(container: Container, path: PurePosixPath, entry: tarfile.TarInfo, content: bytes) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        new = tarfile.TarInfo(path.name)
        new.size, new.mode, new.uid, new.gid, new.mtime = len(content), entry.mode, entry.uid, entry.gid, entry.mtime
        tar.addfile(new, io.BytesIO(content))
    container.put_archive(str(path.parent), packed.getvalue())


def _got(container: Container, path: PurePosixPath) -> bytes:
    packed = io.BytesIO(b"".join(container.get_archive(str(path))[0]))
    with tarfile.open(fileobj=packed) as tar:
        return _content(tar, tar.getmembers()[0])
