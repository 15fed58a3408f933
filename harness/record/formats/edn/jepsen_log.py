"""The log of a Jepsen run, as in porcupine's test data: one event in each line written by `jepsen.util`.

`INFO  jepsen.util - 3<tab>:invoke<tab>:cas<tab>[0 1]`: process, type, f and value, with tabs or spaces in between, and
perhaps an error after another tab. Jepsen 0.3 writes `jepsen.util: 3<tab>:invoke`, and its history.txt has the same
lines without the logger. Lines of other loggers are left out. If an unsuccessful completion has a keyword
for its value, such as :timed-out, that is its error, and the value is that of the invocation.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.core.errors import HistoryError
from harness.core.record import Evidence, Json
from harness.record.formats.edn.forms import one_form
from harness.record.formats.edn.jepsen import records_of_maps

LINE_MAX: Final = 1 << 20
_LOGGER: Final = b"jepsen.util"
_EVENT: Final = rb"(\S+)\s+(:\S+)\s+(:\S+)\s+([^\t]+)(?:\t+([^\t]+))?$"
_LINE: Final = re.compile(rb"jepsen\.util:?\s+(?:-\s+)?" + _EVENT)
_BARE: Final = re.compile(rb"\s*" + _EVENT)
_LOGGED: Final = re.compile(rb"jepsen\.util.*")
_VALUES_MAX: Final = 100_000  # Values cached: histories repeat theirs.


def read_history_txt(path: Path) -> Iterator[Evidence]:
    """The records of a history.txt. Raises HistoryError with the file and the line, from 1."""
    return read_jepsen_log(path, is_bare=True)


def read_jepsen_log(path: Path, *, is_bare: bool = False) -> Iterator[Evidence]:
    """The records of a log; `is_bare`: its lines have no logger.

    Raises HistoryError with the file and the line, from 1.
    """
    try:
        yield from records_of_maps(str(path), log_maps(path, is_bare=is_bare), ":")
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None


def log_maps(path: Path, *, is_bare: bool) -> Iterator[tuple[str, Json]]:
    """The maps of the lines, each with its place. Raises OSError, or HistoryError with the place."""
    with path.open("rb") as file:
        yield from _maps(path, iter(lambda: file.readline(LINE_MAX + 1), b""), is_bare=is_bare)


def _maps(path: Path, lines: Iterator[bytes], *, is_bare: bool) -> Iterator[tuple[str, Json]]:
    """The maps of the lines, each with its place."""
    requested: dict[str, Json] = {}
    known: dict[bytes, Json] = {}
    for number, line in enumerate(lines, start=1):
        place = f"line {number}"
        if len(line) > LINE_MAX:
            raise HistoryError(f"{path}, {place}: it is longer than {LINE_MAX >> 20} MiB, the limit")
        if line.isspace() if is_bare else _LOGGER not in line:
            continue
        try:
            yield place, _map(line, requested, known, is_bare=is_bare)
        except ValueError as problem:
            raise HistoryError(f"{path}, {place}: {problem}") from None


def events_in(text: bytes, *, is_bare: bool) -> bytes:
    """The lines with events, from the logger's name on; none if a line is longer than `LINE_MAX`."""
    if max(map(len, text.split(b"\n"))) >= LINE_MAX:
        return b""
    return text if is_bare else b"\n".join(_LOGGED.findall(text))


def event_in(line: bytes, *, is_bare: bool) -> Json:
    """The map of such a line, unless it refers to other lines. Raises ValueError."""
    return _map(line, {}, {}, is_bare=is_bare)


def _map(line: bytes, requested: dict[str, Json], known: dict[bytes, Json], *, is_bare: bool) -> Json:
    """The map of a line with an event. Raises ValueError."""
    match = _BARE.match(line.rstrip()) if is_bare else _LINE.search(line.rstrip())
    if match is None:
        raise ValueError(f"{'it has not' if is_bare else 'after jepsen.util come'} process, type, f and value")
    process, kind, f = (match[group].decode() for group in (1, 2, 3))
    value, error = (None if text is None else _value(text, known) for text in (match[4], match[5]))
    if kind == ":invoke":
        requested[process] = value
    elif kind != ":ok" and error is None and isinstance(value, str) and value[:1] == ":":
        value, error = requested.get(process), value
    return {
        ":process": int(process) if process.isdecimal() and len(process) < 19 else process,
        ":type": kind,
        ":f": f,
        ":value": value,
        ":error": error,
    }


def _value(text: bytes, known: dict[bytes, Json]) -> Json:
    if text not in known:
        if len(known) >= _VALUES_MAX:
            known.clear()
        known[text] = one_form(text)
    return known[text]
