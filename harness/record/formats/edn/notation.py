"""The notations of Jepsen's maps that are read by columns: EDN, its logs, and JSON with one map in each line.

They differ in spelling alone: `harness.record.formats.edn.jepsen` decides what a map means.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from harness.core.record import Json
from harness.record.formats.edn.forms import one_form, read_edn_with
from harness.record.formats.edn.jepsen import FieldNames
from harness.record.formats.edn.jepsen_log import event_in, events_in, log_maps
from harness.record.formats.edn.plain import PlainLines, PlainTransaction
from harness.record.formats.json_array import BadJson
from harness.record.formats.jsonl import json_value, json_values

APPEND, WRITE, READ_VALUE, READ_NIL, READ_EMPTY, READ_LIST = range(1, 7)  # Kinds of steps, and their bytes in a head.
KINDS: Final = range(APPEND, READ_LIST + 1)
COMMA: Final = b"\x07"  # Stands for a comma in a string of EDN: outside of strings, commas are white space.
NotationName = Literal["EDN", "JSON", "Jepsen log", "Jepsen history.txt"]
_STRING: Final = re.compile(rb'\\.|"(?:[^"\\]|\\.)*+"', re.DOTALL)  # Or a character: it may be a quotation mark.
_COMMAS: Final = bytes.maketrans(b",", b" ")


class Notation(NamedTuple):
    """How maps are written.

    A part of a file begins with a line that begins as one of `beginnings` matches. Maps and invocations are counted by
    the texts in `maps` and `invocations`. `steps` has the spellings of each kind of step, with 0 for each number
    and [~] for a list of numbers. One of `separators`, the shortest first, divides two steps, and two numbers of a
    list; `is_separated`: two steps never stand side by side.
    """

    names: FieldNames
    beginning: re.Pattern[bytes]
    beginnings: tuple[bytes, ...]
    maps: tuple[bytes, ...]
    invocations: tuple[bytes, ...]
    steps: tuple[tuple[int, bytes], ...]
    separators: tuple[bytes, ...]
    is_separated: bool
    even: Callable[[bytes], bytes]  # Lines with the same maps, as they are read by columns; none if that is impossible.
    form: Callable[[bytes], Json]  # The map in a line. Raises ValueError.
    values: Callable[[Path], Iterator[tuple[str, Json | PlainTransaction]]]  # Those of a file, with their places.


def _even_edn(text: bytes) -> bytes:
    if b'"' in text:
        text = _STRING.sub(lambda found: found[0].replace(b",", COMMA), text)
    return text.translate(_COMMAS)


def _edn_form(line: bytes) -> Json:
    return one_form(line.replace(COMMA, b","))


def _edn_values(path: Path) -> Iterator[tuple[str, Json | PlainTransaction]]:
    forms = enumerate(read_edn_with(path, PlainLines(one_form).read))
    return ((f"operation {number}", form) for number, form in forms)


def _json_form(line: bytes) -> Json:
    try:
        return json_value("", line)
    except BadJson as bad:
        raise ValueError(str(bad)) from None


_STEPS_OF_JSON: Final = (
    (APPEND, b'["append",0,0]'),
    (WRITE, b'["w",0,0]'),
    (READ_VALUE, b'["r",0,0]'),
    (READ_NIL, b'["r",0,null]'),
    (READ_EMPTY, b'["r",0,[]]'),
    (READ_LIST, b'["r",0,[~]]'),
)

_EDN: Final = Notation(
    names=FieldNames(":"),
    beginning=re.compile(rb"[\s,]*+(?:\{|#jepsen\.history\.Op)"),
    beginnings=(b"\n{", b"\n#jepsen.history.Op"),
    maps=(b"\n{", b"\n#jepsen.history.Op"),
    invocations=(b":type :invoke,",),
    steps=(
        (APPEND, b"[:append 0 0]"),
        (WRITE, b"[:w 0 0]"),
        (READ_VALUE, b"[:r 0 0]"),
        (READ_NIL, b"[:r 0 nil]"),
        (READ_EMPTY, b"[:r 0 []]"),
        (READ_LIST, b"[:r 0 [~]]"),
    ),
    separators=(b" ", b"  "),
    is_separated=False,
    even=_even_edn,
    form=_edn_form,
    values=_edn_values,
)
# The values in a line of a log are EDN. Each line may begin a part, even one without an event.
_LOG: Final = _EDN._replace(
    beginning=re.compile(b""),
    beginnings=(b"\n",),
    maps=(b"jepsen.util",),
    invocations=(b":invoke",),
    even=partial(events_in, is_bare=False),
    form=partial(event_in, is_bare=False),
    values=partial(log_maps, is_bare=False),
)

NOTATIONS: Final[Mapping[NotationName, Notation]] = MappingProxyType(
    {
        "EDN": _EDN,
        "Jepsen log": _LOG,
        "Jepsen history.txt": _LOG._replace(
            maps=(b"\n",),
            even=partial(events_in, is_bare=True),
            form=partial(event_in, is_bare=True),
            values=partial(log_maps, is_bare=True),
        ),
        "JSON": Notation(
            names=FieldNames(""),
            beginning=re.compile(rb"\s*+\{"),
            beginnings=(b"\n{",),
            maps=(b"\n{",),
            invocations=(b'"type":"invoke"', b'"type": "invoke"'),
            steps=(*_STEPS_OF_JSON, *((kind, step.replace(b",", b", ")) for kind, step in _STEPS_OF_JSON)),
            separators=(b",", b", "),
            is_separated=True,
            even=bytes,
            form=_json_form,
            values=json_values,
        ),
    }
)
