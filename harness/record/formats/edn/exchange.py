"""EDN histories: Jepsen's maps, read and written, for Elle and Knossos."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Invoke, Json, MicroOp
from harness.record.formats.edn.forms import one_form, read_edn_with
from harness.record.formats.edn.jepsen import records_of_maps
from harness.record.formats.edn.plain import PlainLines
from harness.record.formats.edn.times import Times
from harness.record.formats.edn.values import to_edn


def read_edn_history(path: Path, times: Times | None = None) -> Iterator[Evidence]:
    """The records of a history of Jepsen's maps; `times` is for `records_of_maps`.

    Raises HistoryError with the file and the place of the error.
    """
    maps = ((f"operation {number}", form) for number, form in enumerate(read_edn_with(path, PlainLines(one_form).read)))
    return records_of_maps(str(path), maps, ":", times)


def write_edn_history(records: Iterable[Evidence], path: Path) -> None:
    """Write the operations among `records` as Jepsen's maps, one per line; Elle reads those of list-append.

    Records and fields without a Jepsen equivalent are left out: events, faults and the like, timestamps, lock modes. A
    key in a table becomes [table key].
    """
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in edn_lines(records))


def edn_lines(records: Iterable[Evidence]) -> Iterator[str]:
    """The lines of such a file, without line ends.

    Raises HistoryError if an operation completes that was never invoked.
    """
    requested: dict[int, Invoke] = {}
    index = 0
    for record in records:
        if isinstance(record, Invoke | Complete):
            invoke = record if isinstance(record, Invoke) else requested.pop(record.index, None)
            if invoke is None:
                raise HistoryError(f"operation {record.index} completes, and was not invoked before; mend the history")
            if isinstance(record, Invoke):
                requested[record.index] = record
            yield to_edn(_map(record, invoke, index))
            index += 1


def _map(record: Invoke | Complete, invoke: Invoke, index: int) -> Json:
    mops = record.mops if record.mops is not None else invoke.mops
    fields: dict[str, Json] = {
        ":index": index,
        ":type": f":{'invoke' if isinstance(record, Invoke) else record.outcome}",
        ":process": invoke.process,
        ":f": f":{invoke.f}",
        ":value": record.value if mops is None else [_mop(mop) for mop in mops],
        ":time": record.time_ns,
    }
    if isinstance(record, Complete) and record.error is not None:
        fields[":error"] = record.error
    return fields


def _mop(mop: MicroOp) -> Json:
    return [f":{mop.f}", mop.key if mop.table is None else [mop.table, mop.key], mop.value]
