"""One part of a file, read alone in any process: the rows of operations that begin and end inside it.

Theory of operation. A file is cut before lines that begin a map. The reader of a part knows the number of maps and of
invocations before it (a guess, verified by `harness.record.formats.edn.whole`). It reports what it could not decide:
operations still open at its end (`Opened`), and completions of operations that an earlier part opened (`Deferred`).
1. A part must end between two forms. So it also begins between two forms, if all parts before it could be read.
2. Only a process's first map in a part may be deferred. Any other violation of the order of invocation and completion,
   and any error, makes the part unreadable: then the whole file is read in one pass, like a small one.
3. A part of JSON or of a log is read by columns, or not at all.
4. Ids of keys and values count from NAMED within a part; `names` has their texts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.core.errors import HistoryError
from harness.core.record import Invoke
from harness.record.formats.edn.digest import Deferred, Digest, Opened, Part, batch
from harness.record.formats.edn.forms import BadEdn, forms, one_form
from harness.record.formats.edn.jepsen import FieldNames, Map, Pairing, checked
from harness.record.formats.edn.plain import PlainLines
from harness.record.formats.edn.plain_part import plain_digest
from harness.record.formats.edn.times import Times
from harness.record.formats.parquet.operations import Row, completed_row, without_collector
from harness.record.journal import canonical

_BLOCK: Final = 1 << 17  # Bytes decoded at once.
_NAMES: Final = FieldNames(":")


def digest_of(part: Part) -> Digest | None:
    """The digest of a part; None if the part can only be read, or its error only reported, with the whole file."""
    try:
        with without_collector(), Path(part.path).open("rb") as file:
            file.seek(part.offset)
            text = file.read(part.size)
            if (digest := plain_digest(part, text)) is not None:
                return digest
            if part.notation != "EDN":  # Rule 3.
                return None
            reader = _Reader(part)
            reader.read(text)
            return reader.digest()
    except (BadEdn, HistoryError, ValueError, OSError):
        return None


class _Reader:
    """Pairs invocations and completions within a part. Raises ValueError by rule 2."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._pairing = Pairing(is_of_lists=part.is_of_lists, first_op=part.first_op)
        self._open: dict[int, tuple[Invoke, int] | None] = {}  # By process, of all processes seen; None: it is idle.
        self._begun, self._deferred = list[int](), list[Deferred]()
        self._rows, self._canonical = list[Row](), bytearray()
        self._times = Times()
        self._map_count = self._seq = self._fault_count = 0
        self._op_count = part.first_op
        self._first_index = self._last_index = -1
        self._first_ns: int | None = None
        self._last_ns: int | None = None

    def read(self, text: bytes) -> None:
        """Read the text of the part."""
        previous = -1
        for number, form in enumerate(forms(_blocks(text), PlainLines(one_form).read), self._part.first_map):
            each, previous = checked(form, _NAMES, place="", number=number, previous=previous)
            if self._map_count == 0:
                self._first_index = previous
            if each.process is not None:
                self._see(each, each.process)
            self._map_count += 1
            if each.process is None:
                self._fault_count += 1
            elif each.type == "invoke":
                self._invoked(each, each.process)
            else:
                self._completed(each, each.process)
        self._last_index = previous

    def _see(self, each: Map, process: int) -> None:
        self._times.see(process, each.time_ns if each.has_time else None)
        if self._times.fall:
            raise ValueError("times fall")
        if each.has_time:
            self._first_ns, self._last_ns = each.time_ns if self._first_ns is None else self._first_ns, each.time_ns

    def _begin(self, process: int) -> None:
        if process not in self._open:
            self._begun.append(process)
        elif self._open[process] is not None:
            raise ValueError("operations of one process overlap")

    def _defer(self, each: Map, process: int) -> None:
        if process in self._open:
            raise ValueError("a process completes, but is idle")
        self._deferred.append(Deferred(process, each, self._seq, self._op_count, len(self._canonical)))
        self._open[process] = None

    def _invoked(self, each: Map, process: int) -> None:
        self._begin(process)
        record = self._pairing.invoked(each, process)
        self._open[process] = record, self._seq
        self._canonical += canonical(record)
        self._op_count += 1
        self._seq += 1

    def _completed(self, each: Map, process: int) -> None:
        opened = self._open.get(process)
        if opened is None:
            self._defer(each, process)
        else:
            record = self._pairing.completed(each, process)
            self._rows.append(completed_row(*opened, record, self._seq, self._op_count))
            self._canonical += canonical(record)
            self._open[process] = None
        self._seq += 1

    def digest(self) -> Digest:
        """The digest of everything read."""
        return Digest(
            part=self._part,
            map_count=self._map_count,
            op_count=self._op_count - self._part.first_op,
            record_count=self._seq,
            fault_count=self._fault_count,
            first_index=self._first_index,
            last_index=self._last_index,
            first_ns=self._first_ns,
            last_ns=self._last_ns,
            begun=self._begun,
            deferred=self._deferred,
            opened=[
                Opened(process, *found, self._pairing.request(process))
                for process, found in self._open.items()
                if found is not None
            ],
            batch=batch(self._rows),
            canonical=bytes(self._canonical),
        )


def _blocks(text: bytes) -> Iterator[bytes]:
    return (text[begin : begin + _BLOCK] for begin in range(0, len(text), _BLOCK))
