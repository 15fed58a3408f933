"""The fast path for EDN and JSON: lines of transactions over numbers, read into columns without an object for each.

Theory of operation. Histories repeat themselves: once numbers are taken out, few different lines are left.
1. A list of numbers becomes [~], any other number 0. In each different line that remains, the steps of transactions
   (`Notation.steps`) become one byte each, and the steps of one transaction a single byte. The rest of a line is its
   head; a file has some ten different ones.
2. Each different head is read once, as `harness.record.formats.edn.jepsen` reads any line, with a number of its own in
   each place of a 0. So it is known which field each number belongs to. A head is plain only if all of them are a
   process, a time or an index.
3. The numbers themselves are read by Arrow, in order of the text.
So there is no second opinion of what a map means here: a line that differs in anything but its numbers is another head.
Numbers of more than 18 digits, or with leading zeros, and keys and values that need a name are not plain.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from checkers.columns.arrow import integers
from checkers.columns.runs import expand
from harness.core.columns import NAMED, Bools, Int8s, Int64s
from harness.record.formats.edn.jepsen import checked
from harness.record.formats.edn.notation import COMMA, KINDS, NOTATIONS, READ_LIST, Notation, NotationName

TYPES: Final = ("ok", "fail", "info", "invoke")
INVOKE: Final = TYPES.index("invoke")
_WIDTH: Final = np.array([0, 2, 2, 2, 1, 1, 1])  # The numbers in a step outside of a list, by kind.
_STEPS: Final = b"\x01"  # The steps of a transaction, in a head.
_RESERVED: Final = (b"~", b"\0", COMMA, *(bytes([kind]) for kind in KINDS))
_DIGITS: Final = b"0123456789"
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in _DIGITS)
_DIGITS_MAX: Final = 18
_HEADS_MAX: Final = 1000  # Different heads that are remembered.
_MARK: Final = 10**17  # The numbers from here on stand for those of a line while its head is read.
_ABSENT: Final = _MARK - 1  # Stands for an index or a time that is absent.
_PLACES: Final = ("type", "process", "time", "number", "before", "size")


class Head(NamedTuple):
    """A line without its steps and numbers.

    `process`, `time` and `number` (its index) are places among its numbers; -1: absent. `before` of its `size` numbers
    stand before the steps.
    """

    type: int
    error: str | None
    process: int
    time: int
    number: int
    before: int
    size: int


class Events(Struct, frozen=True, kw_only=True):
    """Invocations and completions of transactions, as columns: n events with m steps, r elements read.

    `error` has the places of errors in `errors`. An absent index or time is -1.
    """

    type: Int8s  # (n,) places in TYPES
    process: Int64s  # (n,)
    time: Int64s  # (n,)
    index: Int64s  # (n,)
    error: Int64s  # (n,)
    errors: list[str | None]
    step_start: Int64s  # (n + 1,) steps of event i are step_start[i]:step_start[i + 1]
    kind: Int8s  # (m,)
    key: Int64s  # (m,)
    value: Int64s  # (m,) 0 where there is none
    element_start: Int64s  # (m + 1,)
    elements: Int64s  # (r,)


def even_lines(text: bytes, name: NotationName) -> list[bytes]:
    """The lines that may be plain; none if some cannot be."""
    if any(each in text for each in _RESERVED):
        return []
    text = NOTATIONS[name].even(text.removesuffix(b"\n"))
    return text.split(b"\n") if text.strip() else []


def events_of(text: bytes, name: NotationName) -> Events | None:
    """The events in the lines of that text; None unless all of them are plain."""
    notation = NOTATIONS[name]
    read = _numbers(text, notation)
    if read is None:
        return None
    lines = read.text.split(b"\n")
    places = {line: place for place, line in enumerate(dict.fromkeys(lines))}
    found = _without_steps(b"\n".join(places), notation)
    if found is None:
        return None
    texts, counts, kinds = found
    heads = [head for each in texts if (head := _head(each, name)) is not None]
    if len(heads) < len(places):
        return None
    which = np.array([places[line] for line in lines])
    kinds = kinds[expand((np.cumsum(counts) - counts)[which], counts[which])]
    numbers = np.append(read.outside, -1)  # The last one is read where a field is absent.
    return _events(heads, which, counts[which], kinds, numbers, read.lengths, read.elements)


class _Numbers(NamedTuple):
    """A text with 0 for each number outside of lists and [~] for each list of numbers, and all these numbers."""

    text: bytes
    outside: Int64s
    lengths: Int64s  # The numbers of elements of the lists.
    elements: Int64s


def _numbers(text: bytes, notation: Notation) -> _Numbers | None:
    """The numbers in that text; None if one is too long or has leading zeros."""
    # A sign before and after the text saves asking at each number whether it is the first or the last.
    signs = np.frombuffer(bytearray(b"\n%b\n" % text), np.uint8)
    is_digit = signs - ord("0") < len(_DIGITS)
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1]) + 1
    start, stop = edges[::2], edges[1::2]
    length = stop - start
    if len(start) and (length.max() > _DIGITS_MAX or ((signs[start] == ord("0")) & (length > 1)).any()):
        return None
    value = _integers(text, length)
    follows = _follows(signs, start, stop, notation.separators)
    first = np.flatnonzero(~follows)
    count = np.diff(first, append=len(start))
    is_list = (signs[start[first] - 1] == ord("[")) & (signs[stop[first + count - 1]] == ord("]"))
    is_element = np.repeat(is_list, count)
    is_kept = ~is_digit
    lists, inner = start[first[is_list]], np.flatnonzero(follows & is_element)
    for places, sign in ((start[~is_element], "0"), (lists, "~")):
        signs[places], is_kept[places] = ord(sign), True
    is_kept[stop[inner - 1]] = is_kept[start[inner] - 1] = is_kept[[0, -1]] = False
    return _Numbers(signs[is_kept].tobytes(), value[~is_element], count[is_list], value[is_element])


def _follows(signs: NDArray[np.uint8], start: Int64s, stop: Int64s, separators: Sequence[bytes]) -> Bools:
    """True for numbers of which only a separator divides the number before."""
    result, gap = np.zeros(len(start), np.bool_), start[1:] - stop[:-1]
    for separator in separators:
        places = np.flatnonzero(gap == len(separator))
        is_same = [signs[stop[places] + at] == sign for at, sign in enumerate(separator)]
        result[places + 1] = np.logical_and.reduce(is_same)
    return result


def _integers(text: bytes, length: Int64s) -> Int64s:
    """The integers in that text, by their numbers of digits. Arrow takes a quarter of the time of `np.fromstring`."""
    offsets = pa.py_buffer(np.append(0, np.cumsum(length)).astype(np.int32))
    digits = pa.py_buffer(text.translate(None, _OTHERS))
    return integers(pa.StringArray.from_buffers(len(length), offsets, digits).cast(pa.int64()))


def _without_steps(text: bytes, notation: Notation) -> tuple[list[bytes], Int64s, Int8s] | None:
    """The heads of all lines, their numbers of steps, and the kinds of all steps; None if a separator is missing."""
    for kind, step in notation.steps:
        text = text.replace(step, bytes([kind]))
    separator, *longer = notation.separators
    for other in longer:
        for kind in KINDS:
            text = text.replace(bytes([kind]) + other, bytes([kind]) + separator)
    signs = np.frombuffer(text, np.uint8)
    is_step = signs <= READ_LIST
    if notation.is_separated and (is_step[1:] & is_step[:-1]).any():
        return None
    is_inside = is_step.copy()
    is_inside[1:-1] |= (signs[1:-1] == ord(separator)) & is_step[:-2] & is_step[2:]
    is_kept = np.append(True, ~(is_inside[1:] & is_inside[:-1]))
    heads = np.where(is_step, _STEPS[0], signs)[is_kept].astype(np.uint8).tobytes().split(b"\n")
    places, ends = np.flatnonzero(is_step), np.flatnonzero(signs == ord("\n"))
    counts = np.diff(np.searchsorted(places, ends), prepend=0, append=len(places))
    return heads, counts, signs[places].astype(np.int8)


@lru_cache(_HEADS_MAX)
def _head(text: bytes, name: NotationName) -> Head | None:
    """The head in that text; None if it is not plain."""
    notation = NOTATIONS[name]
    pieces = text.split(b"0")
    size = len(pieces) - 1
    marked = b"".join([piece + b"%d" % (_MARK + place) for place, piece in enumerate(pieces[:-1])]) + pieces[-1]
    step = b"%d".join(notation.steps[0][1].split(b"0")) % (_MARK + size, _MARK + size + 1)
    steps = [[f"{notation.names.mark}append", _MARK + size, _MARK + size + 1]] * text.count(_STEPS)
    try:
        form = notation.form(marked.replace(_STEPS, step))
        each, index = checked(form, notation.names, place="", number=_ABSENT, previous=-1)
    except ValueError:
        return None
    places = [-1 if number in {0, _ABSENT} else number - _MARK for number in (each.process or 0, each.time_ns, index)]
    is_plain = each.f == "txn" and each.process is not None and each.value == steps and len(steps) <= 1
    if not is_plain or b"~" in text or sorted(place for place in places if place >= 0) != list(range(size)):
        return None
    before = text.partition(_STEPS)[0].count(b"0")
    process, time, number = places
    return Head(TYPES.index(each.type), each.error, process, time, number, before, size)


def _events(
    heads: list[Head], which: Int64s, counts: Int64s, kind: Int8s, numbers: Int64s, lengths: Int64s, elements: Int64s
) -> Events | None:
    """The events with those heads: `counts` steps each, of those kinds, and all numbers in order of the text."""
    of_event = {name: np.array([getattr(head, name) for head in heads])[which] for name in _PLACES}
    size, before = of_event["size"], of_event["before"]
    step_start = np.append(0, np.cumsum(counts))
    width = _WIDTH[kind]
    step_width = np.append(0, np.cumsum(width))
    inside = step_width[step_start[1:]] - step_width[step_start[:-1]]
    start = np.cumsum(size + inside) - size - inside

    def field(name: str) -> Int64s:
        place = of_event[name]
        at = start + place + np.where(place >= before, inside, 0)
        return numbers[np.where(place >= 0, at, -1)]

    at = np.repeat(start + before - step_width[step_start[:-1]], counts) + step_width[:-1]
    key, value = numbers[at], np.where(width > 1, numbers[at + width - 1], 0)
    if any(len(each) and each.max() >= NAMED for each in (key, value, elements)):
        return None
    length = np.zeros(len(kind), np.int64)
    length[kind == READ_LIST] = lengths
    return Events(
        type=of_event["type"].astype(np.int8),
        process=np.maximum(field("process"), 0),
        time=field("time"),
        index=field("number"),
        error=which,
        errors=[head.error for head in heads],
        step_start=step_start,
        kind=kind,
        key=key,
        value=value,
        element_start=np.append(0, np.cumsum(length)),
        elements=elements,
    )
