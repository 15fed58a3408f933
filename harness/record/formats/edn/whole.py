"""Files of EDN or JSON, read in parts by any number of processes: the same history, byte for byte, as from one reader.

A file is cut before lines that begin a map (`harness.record.formats.edn.part` defines a part). The number of maps and
invocations before a part is guessed by counting keywords, and verified against the counts that the parts report. If a
guess is wrong, or a part cannot be read alone, the file has to be read in one pass, which also reports the line of any
error.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import IO, Final

from harness.core.errors import HistoryError
from harness.core.record import Footer
from harness.record.formats.edn.digest import Digest, Opened, Part, batch
from harness.record.formats.edn.jepsen import SAMPLE, Pairing, is_of_lists
from harness.record.formats.edn.notation import NOTATIONS, NotationName
from harness.record.formats.edn.part import digest_of
from harness.record.formats.edn.plain_part import plain_is_of_lists
from harness.record.formats.edn.stitching import Stitcher
from harness.record.formats.parquet.operations import completed_row, open_row
from harness.record.formats.parquet.parquet import HistoryWriter
from harness.record.journal import canonical

PART_BYTES: Final = 4 << 20
_LINE: Final = 1 << 20  # If no line begins a map within this many bytes, the file cannot be cut.
Spread = Callable[[Callable[[Part], Digest | None], Iterable[Part]], AbstractContextManager[Iterator[Digest | None]]]


class NotInParts(Exception):
    """The file has to be read in one pass."""


def write_in_parts(
    path: Path,
    folder: Path,
    spread: Spread,
    *,
    notation: NotationName = "EDN",
    part_bytes: int = PART_BYTES,
    is_hashed: bool = True,
) -> int:
    """Write the history in a file into `folder`; returns the number of nemesis maps left out.

    `spread` gives the results of a function of parts, in order of the parts. Without `is_hashed`, the history does not
    record its hash. Raises NotInParts if this file cannot be read in parts, and the errors of `spread`: both leave
    `folder` unchanged. Raises OSError if `folder` cannot be written.
    """
    writer = HistoryWriter(folder, is_hashed=is_hashed)
    try:
        whole = _Whole(writer)
        with spread(digest_of, _parts(path, notation, part_bytes, is_hashed=is_hashed)) as digests:
            for digest in digests:
                if digest is None:
                    raise NotInParts
                whole.take(digest)
        return whole.finish()
    finally:
        writer.discard()


class _Whole:
    """The state carried from part to part."""

    def __init__(self, writer: HistoryWriter) -> None:
        self._writer, self._stitcher = writer, Stitcher(writer)
        self._open: dict[int, Opened] = {}  # By process. Positions are those in the whole file.
        self._map_count = self._op_count = self._seq = self._fault_count = 0
        self._last_index = self._last_ns = -1

    def take(self, digest: Digest) -> None:
        """Add the next part. Raises NotInParts."""
        if (digest.part.first_map, digest.part.first_op) != (self._map_count, self._op_count):
            raise NotInParts
        if digest.map_count and digest.first_index <= self._last_index:
            raise NotInParts
        if digest.first_ns is not None and digest.first_ns < self._last_ns:
            raise NotInParts  # Times fall: then the whole file has another order.
        if any(process in self._open for process in digest.begun):
            raise NotInParts
        self._stitcher.take(digest.batch, first_seq=self._seq)
        self._complete(digest)
        self._stitcher.flush()
        for each in digest.opened:
            self._open[each.process] = each._replace(seq=self._seq + each.seq)
        self._map_count += digest.map_count
        self._op_count += digest.op_count
        self._fault_count += digest.fault_count
        self._seq += digest.record_count
        self._last_index = max(self._last_index, digest.last_index)
        self._last_ns = self._last_ns if digest.last_ns is None else digest.last_ns

    def finish(self) -> int:
        """Write everything left; returns the number of nemesis maps left out."""
        rows = [open_row(each.invoke, each.seq) for each in self._open.values()]
        self._stitcher.take(batch(rows))
        self._stitcher.finish()
        self._writer.add(Footer(0, "imported"))
        self._writer.close()
        return self._fault_count

    def _complete(self, digest: Digest) -> None:
        """Pair completions in this part with invocations of earlier parts; hash the part."""
        pairing = Pairing(is_of_lists=digest.part.is_of_lists)
        rows, hashed, text = [], 0, memoryview(digest.canonical)
        for each in digest.deferred:
            opened = self._open.pop(each.process, None)
            if opened is None:
                raise NotInParts
            pairing.resume(each.process, opened.request)
            try:
                record = pairing.completed(each.map, each.process)
                self._writer.add_canonical(text[hashed : each.place])
                self._writer.add_canonical(canonical(record))
            except ValueError:
                raise NotInParts from None
            hashed = each.place
            rows.append(completed_row(opened.invoke, opened.seq, record, self._seq + each.seq, each.op_count))
        self._writer.add_canonical(text[hashed:])
        self._stitcher.take(batch(rows))


def _parts(path: Path, name: NotationName, part_bytes: int, *, is_hashed: bool) -> Iterator[Part]:
    """The parts of a file, in order. Raises NotInParts if the file does not begin with a map, or cannot be cut."""
    notation = NOTATIONS[name]
    try:
        with path.open("rb") as file:
            if not notation.beginning.match(file.read(_LINE)):
                raise NotInParts
            offset = first_map = first_op = 0
            of_lists: bool | None = None
            while text := _text(file, offset, part_bytes, notation.beginnings):
                if of_lists is None:
                    of_lists = plain_is_of_lists(text, name, is_whole=len(text) == path.stat().st_size)
                if of_lists is None:
                    of_lists = is_of_lists(islice(notation.values(path), SAMPLE), notation.names)
                yield Part(str(path.absolute()), offset, len(text), first_map, first_op, of_lists, name, is_hashed)
                offset += len(text)
                first_map += sum(map((b"\n" + text.removesuffix(b"\n")).count, notation.maps))
                first_op += sum(map(text.count, notation.invocations))
    except (OSError, HistoryError):
        raise NotInParts from None


def _text(file: IO[bytes], offset: int, part_bytes: int, beginnings: tuple[bytes, ...]) -> bytes:
    """The bytes of the part at `offset`: about `part_bytes`, extended to the next line that begins a map."""
    file.seek(offset)
    text = file.read(part_bytes)
    following = file.read(_LINE)
    if not following:
        return text
    text += following
    found = [at for at in (text.find(sign, part_bytes - 1) for sign in beginnings) if at >= 0]
    if found:
        return text[: min(found) + 1]
    if len(following) == _LINE:
        raise NotInParts
    return text
